import * as z from "zod";
import { FIRST_INSTANT_MS, LAST_INSTANT_MS } from "../domain/instant.ts";
import { readYaml } from "./yaml.ts";

/**
 * A record from the cluster, or the problem with it. People edit records with kubectl, so a malformed record is a
 * result and not an exception: it affects only its own object.
 */
export type Parsed<T> = { readonly ok: true; readonly value: T } | Malformed;

export interface Malformed {
  readonly ok: false;
  readonly problem: string;
  /** Present if the name of the object or the type of the Secret is wrong. Both are immutable in Kubernetes. */
  readonly isImmutable?: true;
}

/**
 * Maximum size of a record that is parsed, in bytes of keys and values; members have their own maximum. Parsing takes
 * at most about 100 ms. Kubernetes allows 1 MiB, and one such record would stop all requests for seconds.
 */
export const MAX_RECORD_BYTES = 65_536;

/** Maximum number of problems that are described. A record can have one for every few bytes. */
const MAX_PROBLEMS = 5;

/** Longest name and longest message in a problem, in UTF-16 code units: a key can have any length. */
const MAX_NAME_LENGTH = 100;
const MAX_MESSAGE_LENGTH = 500;

/** Validates the data of a ConfigMap or Secret against a schema; the problem names the keys. */
export function parseRecord<T>(
  schema: z.ZodType<T>,
  data: Readonly<Record<string, string>> | undefined = {},
): Parsed<T> {
  return sizeProblem(data) ?? parseWith(schema, data);
}

/** Returns a problem if the record is too large to be parsed; otherwise `undefined`. */
export function sizeProblem(
  data: Readonly<Record<string, string>>,
  maxBytes = MAX_RECORD_BYTES,
): Malformed | undefined {
  let total = 0;
  let largest = { key: "", bytes: 0 };
  for (const key of Object.keys(data)) {
    const bytes = Buffer.byteLength(key) + Buffer.byteLength(data[key] ?? "");
    total += bytes;
    if (bytes > largest.bytes) largest = { key, bytes };
  }
  if (total <= maxBytes) return undefined;
  const longest = `the longest value is ${clipped(largest.key, MAX_NAME_LENGTH)} with ${largest.bytes}`;
  const problem = `the record: it has ${total} bytes, and at most ${maxBytes} are allowed; ${longest}`;
  return { ok: false, problem };
}

function parseWith<T>(schema: z.ZodType<T>, input: unknown): Parsed<T> {
  const result = schema.safeParse(input);
  return result.success
    ? { ok: true, value: result.data }
    : { ok: false, problem: describeIssues(result.error) };
}

export function describeIssues(error: z.ZodError): string {
  return describeProblems(error.issues.map(describeIssue));
}

/** The first five problems, and the number of the others. */
export function describeProblems(problems: readonly string[]): string {
  const shown = problems.slice(0, MAX_PROBLEMS);
  const more = problems.length - shown.length;
  return [...shown, ...(more > 0 ? [`and ${more} more`] : [])].join("; ");
}

function describeIssue({ path, message }: z.core.$ZodIssue): string {
  const where = path.map((key) => clipped(String(key), MAX_NAME_LENGTH)).join(".");
  return `${where || "the record"}: ${clipped(message, MAX_MESSAGE_LENGTH)}`;
}

function clipped(text: string, maxLength: number): string {
  return text.length > maxLength ? `${text.slice(0, maxLength).toWellFormed()}…` : text;
}

/**
 * The schemas of values that are themselves YAML. JSON Schema describes such a value only as a string, so the
 * generated reference reads the inner keys from this registry. `unknown`, because zod's types allow no schema here.
 */
export const yamlContents = z.registry<{ readonly content: unknown }>();

/** A value that is itself YAML, in which every scalar stays a string. */
export function yamlValue<T>(schema: z.ZodType<T>): z.ZodType<T, string> {
  const value = z.string().transform((text, context) => {
    const read = readYaml(text, "failsafe");
    const parsed = read.ok ? parseWith(schema, read.value) : read;
    if (parsed.ok) return parsed.value;
    context.addIssue({ code: "custom", message: parsed.problem });
    return z.NEVER;
  });
  return value.register(yamlContents, { content: schema });
}

/** Parses a date and time with an offset. Responses show it in UTC. */
export const instant = z.iso
  .datetime({ offset: true, error: "must be a date and time such as 2026-01-31T12:00:00Z" })
  .transform((text, context) => {
    const time = new Date(text);
    if (time.getTime() >= FIRST_INSTANT_MS && time.getTime() <= LAST_INSTANT_MS) return time;
    context.addIssue({ code: "custom", message: "must be in the years 0000 to 9999 in UTC" });
    return z.NEVER;
  });

export const nonEmpty = z.string({ error: "is missing" }).min(1, { error: "must not be empty", abort: true });
