import type * as z from "zod";

/** Longest error text in UTF-16 code units, so that no request is echoed at length. */
const LENGTH_LIMIT = 500;

/** Maximum number of validation errors in one response. */
const ERRORS_LIMIT = 5;

/** Longest quoted name, in UTF-16 code units: a caller's field name can have any length. */
const NAME_LIMIT = 40;

const CONTROL_CHARACTER_OR_LINE_SEPARATOR = /[\p{Cc}\p{Zl}\p{Zp}]/gu;

/**
 * An error message that any JSON parser and any terminal accepts, even if it quotes a request: well-formed Unicode,
 * control characters and line separators escaped as in JSON, and at most 500 UTF-16 code units.
 */
export function errorText(message: string): string {
  const visible = message.toWellFormed().replace(CONTROL_CHARACTER_OR_LINE_SEPARATOR, escapeOf);
  if (visible.length <= LENGTH_LIMIT) return visible;
  return `${prefixOf(visible, LENGTH_LIMIT - 1)}…`;
}

/** Returns one sentence, without its period, that names the fields and their rules, at most five. */
export function describeValidationErrors(error: z.ZodError): string {
  // One number can break several parts of the same rule.
  const errors = [...new Set(error.issues.flatMap(describe))];
  const shown = errors.slice(0, ERRORS_LIMIT);
  const more = errors.length - shown.length;
  return `${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}

function describe(issue: z.core.$ZodIssue): string[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => `${quote(key)} is not a field of this body`);
  }
  if (issue.path.length > 0) return [`${issue.path.join(".")} ${issue.message}`];
  return [`The body ${issue.code === "invalid_type" ? "must be a JSON object" : issue.message}`];
}

/** A name from the caller as a JSON string, cut if it is too long. */
export function quote(name: string): string {
  return JSON.stringify(name.length > NAME_LIMIT ? `${prefixOf(name, NAME_LIMIT)}…` : name);
}

/** The first UTF-16 code units of a text; one fewer than `length` if that would split a surrogate pair. */
function prefixOf(text: string, length: number): string {
  const prefix = text.slice(0, length);
  const splitsPair = (text.codePointAt(length - 1) ?? 0) > 0xffff;
  return splitsPair ? prefix.slice(0, -1) : prefix;
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
