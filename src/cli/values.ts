import * as z from "zod";
import { canonicalUuid } from "../domain/identifiers.ts";

/** A value from the text that a person wrote; `rule` says what is allowed, as in "but it must be …". */
export function written<T>(rule: string, parse: (text: string) => T | undefined): z.ZodType<T, string> {
  return z.string().transform((text, context) => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: "custom", message: rule });
    return z.NEVER;
  });
}

export function wholeNumber(least: number, most: number): z.ZodType<number, string> {
  return written(`it must be a whole number from ${least} to ${most}`, (text) => {
    const value = Number(text);
    return /^\d{1,9}$/.test(text) && value >= least && value <= most ? value : undefined;
  });
}

/** Kubernetes sets such a variable in pods for a Service that is named pipe-scaling. */
const SERVICE_LINK = /^tcp:\/\//;

const portNumber = wholeNumber(0, 65_535);

/** A TCP port; 0 lets the system choose. */
export const port: z.ZodType<number, string> = z.string().transform((text, context) => {
  const read = portNumber.safeParse(text);
  if (read.success) return read.data;
  const hint = SERVICE_LINK.test(text)
    ? " (Kubernetes sets this variable in pods beside a Service named pipe-scaling: set enableServiceLinks to false)"
    : "";
  context.addIssue({ code: "custom", message: `it must be a whole number from 0 to 65535${hint}` });
  return z.NEVER;
});

const choices = new WeakMap<z.core.$ZodType, readonly string[]>();

/** All values that a schema allows, where they are few enough to be told: those of {@link oneOf}. */
export function choicesOf(schema: z.core.$ZodType): readonly string[] | undefined {
  return schema instanceof z.ZodOptional ? choicesOf(schema.unwrap()) : choices.get(schema);
}

export function oneOf<const T extends string>(...values: readonly [T, ...T[]]): z.ZodType<T, string> {
  const schema = written(`it must be ${alternatives(values)}`, (text) =>
    values.find((value) => value === text),
  );
  choices.set(schema, values);
  return schema;
}

function alternatives(values: readonly string[]): string {
  return [values.slice(0, -1).join(", "), values.at(-1)].filter(Boolean).join(" or ");
}

/** A flag without a value; `true` or `false` in its variable. */
export const onOff: z.ZodType<boolean, string> = oneOf("true", "false").transform((text) => text === "true");

/** Values between commas. */
export function listOf<T>(item: z.ZodType<T, string>): z.ZodType<T[], string> {
  const schema = z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .pipe(z.array(item));
  const ofItem = choicesOf(item);
  if (ofItem) choices.set(schema, ofItem);
  return schema;
}

/** A word that stands for itself, or a value. */
export function orWord<const W extends string, T>(
  word: W,
  value: z.ZodType<T, string>,
): z.ZodType<W | T, string> {
  return z.string().transform((text, context): W | T => {
    if (text === word) return word;
    const read = value.safeParse(text);
    if (read.success) return read.data;
    const rule = read.error.issues[0]?.message ?? "";
    context.addIssue({ code: "custom", message: `${rule}, or ${word}` });
    return z.NEVER;
  });
}

export const nonEmptyText = written("it must not be empty", (text) =>
  text.trim() === "" ? undefined : text.trim(),
);

export const uuid = written("it must be a UUID such as 01234567-89ab-4cde-8f01-23456789abcd", canonicalUuid);

export const namespaceName = written(
  "it must be the name of a namespace: at most 63 lower-case letters, digits and hyphens",
  (text) => (/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(text) ? text : undefined),
);

const UNIT_MS: ReadonlyMap<string | undefined, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
]);

/** A duration such as `90s` or `15m`, in milliseconds. */
export function durationMs(least: string, most: string): z.ZodType<number, string> {
  const [leastMs, mostMs] = [milliseconds(least) ?? 0, milliseconds(most) ?? 0];
  return written(`it must be a duration from ${least} to ${most}, such as 90s, 15m or 1h`, (text) => {
    const value = milliseconds(text);
    return value !== undefined && value >= leastMs && value <= mostMs ? value : undefined;
  });
}

function milliseconds(text: string): number | undefined {
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text);
  const unit = UNIT_MS.get(match?.[2]);
  return match && unit !== undefined ? Number(match[1]) * unit : undefined;
}

/** A moment to come, in any offset. */
export const futureInstant = written(
  "it must be a date and time to come, such as 2030-01-31T12:00:00Z",
  (text) => {
    const read = z.iso.datetime({ offset: true }).safeParse(text);
    const instant = new Date(text);
    return read.success && instant.getTime() > Date.now() ? instant : undefined;
  },
);

// As the API reads them, which takes no zone: what this let through would deny a key everywhere.
const strictAddresses = [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()];

/** An address or a CIDR of either family, as written. */
export const addressOrCidr = written(
  "each of its values must be an IP address or a CIDR, such as 10.0.0.0/8 or 2001:db8::1",
  (text) => (strictAddresses.some((schema) => schema.safeParse(text).success) ? text : undefined),
);

export const emailAddress = written("it must be an e-mail address", (text) => z.email().safeParse(text).data);
