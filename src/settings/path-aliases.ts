import * as z from "zod";
import { listOf, type Value, withChartRule, written } from "./values.ts";

/**
 * Characters that a URL has as they are, without `.` and `..`, which a client would resolve (RFC 3986, sections 2.3 and
 * 5.2.4). Helm knows no lookahead.
 */
const SEGMENT = String.raw`(?:\.{0,2}[-\w~][-\w.~]*|\.{3}[-\w.~]*)`;

const PAIR = new RegExp(`^(${SEGMENT})=(${SEGMENT})$`);

const segment = z.string().regex(new RegExp(`^${SEGMENT}$`));

const pair = written(
  "each of its values must be alias=segment, both of letters, digits and -._~",
  (text): [alias: string, segment: string] | undefined => {
    const [, alias, segment] = PAIR.exec(text) ?? [];
    return alias !== undefined && segment !== undefined ? [alias, segment] : undefined;
  },
);

/** Pairs such as `scaling=pipesCdcScaling`, separated by commas; in the chart a map. */
export const pathAliases: Value<ReadonlyMap<string, string>> = withChartRule(
  listOf(pair).transform((pairs, context) => {
    const aliases = new Map(pairs);
    if (aliases.size === pairs.length) return aliases;
    context.addIssue({ code: "custom", message: "no alias may come twice" });
    return z.NEVER;
  }),
  z.record(segment, segment),
);
