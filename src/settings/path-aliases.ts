import * as z from "zod";
import { listOf, type Value, withChartRule, written } from "./values.ts";

/**
 * Unreserved URL characters, except for `.` and `..`, which a client would resolve (RFC 3986, sections 2.3 and 5.2.4).
 * Without lookahead, which Helm does not support.
 */
const SEGMENT = String.raw`(?:\.{0,2}[-\w~][-\w.~]*|\.{3}[-\w.~]*)`;

const PAIR = new RegExp(`^(${SEGMENT})=(${SEGMENT})$`);

const segment = z.string().regex(new RegExp(`^${SEGMENT}$`));

const pair = written(
  "each value must be alias=segment; both consist of letters, digits and -._~",
  (text): [alias: string, segment: string] | undefined => {
    const [, alias, segment] = PAIR.exec(text) ?? [];
    return alias !== undefined && segment !== undefined ? [alias, segment] : undefined;
  },
);

/** Comma-separated pairs such as `scaling=pipesCdcScaling`; a map in the chart. */
export const pathAliases: Value<ReadonlyMap<string, string>> = withChartRule(
  listOf(pair).transform((pairs, context) => {
    const aliases = new Map(pairs);
    if (aliases.size === pairs.length) return aliases;
    context.addIssue({ code: "custom", message: "each alias may occur only once" });
    return z.NEVER;
  }),
  z.record(segment, segment),
);
