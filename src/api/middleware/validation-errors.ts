import type * as z from "zod";
import { prefixOf } from "./error-text.ts";

/** Most validation errors in one response. */
const ERRORS_LIMIT = 5;

/** Longest quoted name, in UTF-16 code units: a caller's field name can have any length. */
const NAME_LIMIT = 40;

/** One sentence, without its full stop, that names each field and its rule. */
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
