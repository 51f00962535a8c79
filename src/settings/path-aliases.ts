import * as z from "zod";
import { alternatives, listOf, type Value, withChartRule, written } from "./values.ts";

/** The literal segments of the API's paths after the version. A test compares them with the operations. */
export const PATH_SEGMENTS = [
  "organizations",
  "keys",
  "services",
  "members",
  "backupConfiguration",
  "pipesCdcScaling",
  "progress",
  "limits",
  "history",
  "prometheus",
  "boost",
] as const;

const segments: ReadonlySet<string> = new Set(PATH_SEGMENTS);

/**
 * Unreserved URL characters, except for `.` and `..`, which a client would resolve (RFC 3986, sections 2.3 and 5.2.4).
 * The pattern has no lookahead, because Helm does not support it.
 */
const SEGMENT = String.raw`(?:\.{0,2}[-\w~][-\w.~]*|\.{3}[-\w.~]*)`;

const PAIR = new RegExp(`^(${SEGMENT})=(${SEGMENT})$`);

const aliasInChart = z
  .string()
  .regex(new RegExp(`^${SEGMENT}$`))
  .meta({ not: { enum: PATH_SEGMENTS } });

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
    const rule = brokenRule(pairs, aliases);
    if (rule === undefined) return aliases;
    context.addIssue({ code: "custom", message: rule });
    return z.NEVER;
  }),
  z.record(aliasInChart, z.enum(PATH_SEGMENTS)),
);

function brokenRule(
  pairs: readonly (readonly [alias: string, segment: string])[],
  aliases: ReadonlyMap<string, string>,
): string | undefined {
  const unknown = pairs.find(([, segment]) => !segments.has(segment));
  if (unknown) return `the segment ${unknown[1]} does not exist: it must be ${alternatives(PATH_SEGMENTS)}`;
  const hidden = pairs.find(([alias]) => segments.has(alias));
  if (hidden) return `the alias ${hidden[0]} must not be a segment itself`;
  return aliases.size === pairs.length ? undefined : "each alias may occur only once";
}
