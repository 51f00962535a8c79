import * as z from "zod";
import { canonicalUuid } from "../domain/identifiers.ts";
import { type Value, written } from "../settings/values.ts";

/** A word that stands for itself, or a value. */
export function orWord<const W extends string, T>(word: W, value: Value<T>): Value<W | T> {
  return z.string().transform((text, context): W | T => {
    if (text === word) return word;
    const read = value.safeParse(text);
    if (read.success) return read.data;
    const rule = read.error.issues[0]?.message ?? "";
    context.addIssue({ code: "custom", message: `${rule}, or ${word}` });
    return z.NEVER;
  });
}

export const uuid = written("it must be a UUID such as 01234567-89ab-4cde-8f01-23456789abcd", canonicalUuid);

/** A moment to come, in any offset. */
export const futureInstant = written(
  "it must be a date and time to come, such as 2030-01-31T12:00:00Z",
  (text) => {
    const read = z.iso.datetime({ offset: true }).safeParse(text);
    const instant = new Date(text);
    return read.success && instant.getTime() > Date.now() ? instant : undefined;
  },
);

export const emailAddress = written("it must be an e-mail address", (text) => z.email().safeParse(text).data);
