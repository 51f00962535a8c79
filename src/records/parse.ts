import { parseDocument, YAMLParseError } from "yaml";
import * as z from "zod";

/**
 * A record read from the cluster, or what is wrong with it. People edit records with kubectl, so a
 * malformed one is an answer and not an exception: it fails what it is about, and nothing else.
 */
export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problem: string };

/** The flat strings of a ConfigMap or Secret against a schema; the problem names the keys. */
export function parseRecord<T>(
  schema: z.ZodType<T>,
  data: Readonly<Record<string, string>> | undefined,
): Parsed<T> {
  return parseWith(schema, data ?? {});
}

function parseWith<T>(schema: z.ZodType<T>, input: unknown): Parsed<T> {
  const result = schema.safeParse(input);
  return result.success
    ? { ok: true, value: result.data }
    : { ok: false, problem: describeIssues(result.error) };
}

export function describeIssues(error: z.ZodError): string {
  return error.issues.map((issue) => `${issue.path.join(".") || "the record"}: ${issue.message}`).join("; ");
}

/**
 * The schemas of values that are themselves YAML. JSON Schema describes such a value only as a string, so the
 * reference reads the keys inside from here. `unknown`, because zod's types do not allow a schema here.
 */
export const yamlContents = z.registry<{ readonly content: unknown }>();

/**
 * A value that is itself YAML: every scalar stays the string it was written as (failsafe schema), and
 * aliases are refused, because a few bytes of them can stand for gigabytes.
 */
export function yamlValue<T>(schema: z.ZodType<T>): z.ZodType<T, string> {
  const value = z.string().transform((text, context) => {
    const read = readFailsafe(text);
    const parsed = read.ok ? parseWith(schema, read.value) : read;
    if (parsed.ok) return parsed.value;
    context.addIssue({ code: "custom", message: parsed.problem });
    return z.NEVER;
  });
  return value.register(yamlContents, { content: schema });
}

/** Reads YAML whose scalars all stay strings. */
export function readFailsafe(text: string): Parsed<unknown> {
  try {
    const document = parseDocument(text, { schema: "failsafe" });
    const [syntax] = document.errors;
    if (syntax) throw syntax;
    return { ok: true, value: document.toJS({ maxAliasCount: 0 }) };
  } catch (error) {
    return { ok: false, problem: `is not YAML without aliases${whereIn(error)}` };
  }
}

/** Not the parser's own words: they quote the text, and that of a Secret must not get into a log. */
function whereIn(error: unknown): string {
  if (!(error instanceof YAMLParseError)) return "";
  const [start] = error.linePos ?? [];
  return `: ${error.code}${start ? ` at line ${start.line}, column ${start.col}` : ""}`;
}

/** UTC in, and the same moment as ISO 8601 with `Z` out. */
export const instant = z.iso
  .datetime({ offset: true, error: "must be a date and time such as 2026-01-31T12:00:00Z" })
  .transform((text) => new Date(text));

export const nonEmpty = z.string({ error: "is missing" }).min(1, "must not be empty");
