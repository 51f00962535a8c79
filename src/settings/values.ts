import { isIP } from "node:net";
import * as z from "zod";
import { AddressSet } from "../domain/address-set.ts";

/** A schema that parses the text of a flag or variable into a `T`. */
export type Value<T> = z.ZodType<T, string>;

interface Facts {
  /** All allowed values, if they are a short list. */
  readonly choices?: readonly string[] | undefined;
  /** Bounds of a number or a duration, such as `1s to 24h`. */
  readonly range?: string;
  /** The rule of the chart value, which is YAML. */
  readonly inChart?: z.ZodType;
}

const known = new WeakMap<z.core.$ZodType, Facts>();

function factsOf(schema: z.core.$ZodType): Facts {
  return known.get(schema) ?? (schema instanceof z.ZodOptional ? factsOf(schema.unwrap()) : {});
}

function withFacts<S extends z.ZodType>(schema: S, facts: Facts): S {
  known.set(schema, facts);
  return schema;
}

/** Attaches the rule for the chart value to a schema. */
export function withChartRule<S extends z.ZodType>(schema: S, rule: z.ZodType): S {
  return withFacts(schema, { inChart: rule });
}

/** Returns all values that a schema allows, if it is {@link oneOf} or a list of it. */
export function choicesOf(schema: z.core.$ZodType): readonly string[] | undefined {
  return factsOf(schema).choices;
}

export function rangeOf(schema: z.core.$ZodType): string | undefined {
  return factsOf(schema).range;
}

/** Returns the rule of a schema for its chart value. A schema without such a rule allows any text. */
export function inChart(schema: z.core.$ZodType): z.ZodType {
  return factsOf(schema).inChart ?? z.string();
}

/**
 * The rule for a chart value that is a text. A template checks it, because the error of a JSON Schema would print the
 * pattern, and a pattern can compare neither durations nor addresses.
 */
export interface TextRule {
  /** The allowed values, worded as the end of an error: "it must be …" */
  readonly sentence: string;
  readonly pattern: string;
  /** Bounds of a duration. */
  readonly least?: string;
  readonly most?: string;
  /** A CIDR must begin with the first address of its range. */
  readonly isRange?: true;
}

/** The keyword of a chart value's schema that has its {@link TextRule}. */
export const TEXT_RULE = "x-rule";

/** A chart value that is a text with a rule. Each pattern matches the whole text. */
export function chartText(
  sentence: string,
  patterns: readonly RegExp[],
  more: Omit<TextRule, "sentence" | "pattern"> = {},
): z.ZodString {
  const rule: TextRule = { sentence, pattern: patterns.map(({ source }) => source).join("|"), ...more };
  return z.string().meta({ [TEXT_RULE]: rule });
}

/** @param rule the allowed values, worded as the end of an error: "it must be …" */
export function written<T>(
  rule: string,
  parse: (text: string) => T | undefined,
  chart?: z.ZodType,
): Value<T> {
  const schema = z.string().transform((text, context) => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: rule });
    return z.NEVER;
  });
  return chart ? withChartRule(schema, chart) : schema;
}

export function integer(least: number, most: number): Value<number> {
  const parse = (text: string) => {
    const value = Number(text);
    return /^\d{1,9}$/.test(text) && value >= least && value <= most ? value : undefined;
  };
  return withFacts(written(`it must be a whole number from ${least} to ${most}`, parse), {
    range: `${least} to ${most}`,
    inChart: z.int().min(least).max(most),
  });
}

/** The value of PIPE_SCALING_PORT that Kubernetes sets in pods if there is a Service named pipe-scaling. */
const SERVICE_LINK = /^tcp:\/\//;

const portNumber = integer(0, 65_535);

/** A TCP port; 0 lets the operating system choose. */
export const port: Value<number> = z.string().transform((text, context) => {
  const read = portNumber.safeParse(text);
  if (read.success) return read.data;
  const hint = SERVICE_LINK.test(text)
    ? " (Kubernetes sets this variable for a Service named pipe-scaling in the same namespace: set enableServiceLinks to false)"
    : "";
  context.addIssue({ code: "custom", message: `it must be a whole number from 0 to 65535${hint}` });
  return z.NEVER;
});

export function oneOf<const T extends string>(...choices: readonly [T, ...T[]]): Value<T> {
  const schema = written(`it must be ${alternatives(choices)}`, (text) =>
    choices.find((value) => value === text),
  );
  return withFacts(schema, { choices, inChart: z.enum(choices) });
}

/** Formats a choice for people: `a, b or c`. */
export function alternatives(values: readonly string[]): string {
  return [values.slice(0, -1).join(", "), values.at(-1)].filter(Boolean).join(" or ");
}

/** A flag without a value; its variable is `true` or `false`. */
export const onOff: Value<boolean> = withChartRule(
  oneOf("true", "false").transform((text) => text === "true"),
  z.boolean(),
);

/** Comma-separated values. */
export function listOf<T>(item: Value<T>): Value<T[]> {
  const schema = z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .pipe(z.array(item));
  return withFacts(schema, { choices: choicesOf(item), inChart: z.array(inChart(item)) });
}

export const nonEmptyText = written("it must not be empty", (text) =>
  text.trim() === "" ? undefined : text.trim(),
);

/** Letters, digits, hyphens and dots, with at least one letter, because only an IP address has none. */
const HOST_NAME = /^(?=.*[a-z])[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/i;

/** Pods listen on an IP address, so the chart value cannot be a host name. */
export const listenAddress = written(
  "it must be an IP address or a host name, without a port",
  (text) => (isIP(text) !== 0 || HOST_NAME.test(text) ? text : undefined),
  chartText("it must be an IP address without a port, such as 0.0.0.0 or ::", [
    z.regexes.ipv4,
    z.regexes.ipv6,
  ]),
);

const NAMESPACE_NAME = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
const NAMESPACE_RULE = "it must be a namespace name: at most 63 lowercase letters, digits and hyphens";

export const namespaceName = written(
  NAMESPACE_RULE,
  (text) => (NAMESPACE_NAME.test(text) ? text : undefined),
  chartText(NAMESPACE_RULE, [NAMESPACE_NAME]),
);

/** An IPv4 or IPv6 address or CIDR, unchanged. Access lists of API keys accept the same values. */
export const addressOrCidr: Value<string> = withChartRule(
  z.string().superRefine((text, context) => {
    const problem = new AddressSet().add(text);
    if (problem !== undefined) context.addIssue({ code: "custom", message: `each value ${problem}` });
  }),
  chartText(
    "it must be an IP address or a CIDR, such as 10.0.0.0/8 or 2001:db8::1",
    [z.regexes.ipv4, z.regexes.ipv6, z.regexes.cidrv4, z.regexes.cidrv6],
    { isRange: true },
  ),
);

/** A chart value that Kubernetes reads as a CIDR. */
export const chartCidr = chartText(
  "it must be a CIDR, such as 10.0.0.0/8 or 2001:db8::/32",
  [z.regexes.cidrv4, z.regexes.cidrv6],
  { isRange: true },
);

const UNITS_MS: ReadonlyMap<string | undefined, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
]);

const DURATION = /^(\d{1,9})(ms|s|m|h)$/;

/** A duration such as `90s` or `15m`, in milliseconds. */
export function durationMs(least: string, most: string): Value<number> {
  const [leastMs, mostMs] = [milliseconds(least) ?? 0, milliseconds(most) ?? 0];
  const parse = (text: string) => {
    const value = milliseconds(text);
    return value !== undefined && value >= leastMs && value <= mostMs ? value : undefined;
  };
  const rule = `it must be a duration from ${least} to ${most}, in ms, s, m or h`;
  return withFacts(written(rule, parse), {
    range: `${least} to ${most}`,
    inChart: chartText(rule, [DURATION], { least, most }),
  });
}

function milliseconds(text: string): number | undefined {
  const match = DURATION.exec(text);
  const unit = UNITS_MS.get(match?.[2]);
  return match && unit !== undefined ? Number(match[1]) * unit : undefined;
}
