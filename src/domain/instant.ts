/*
 * A time is text in every object and response, as a date-time of RFC 3339, whose year has four digits in UTC too.
 * `9999-12-31T23:59:59-12:00` is such a text, but the same time in UTC has none: the API server refuses
 * `+010000-01-01T11:59:59Z`, and with it the whole status.
 */

/** The first time with a text in UTC, in milliseconds since 1970. */
export const FIRST_INSTANT_MS = Date.parse("0000-01-01T00:00:00Z");
/** The last one. */
export const LAST_INSTANT_MS = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Parses a time that another writer wrote. Returns milliseconds since 1970, the nearest time that has a text, or NaN if
 * the text is no time.
 */
export function parseInstant(text: string | undefined): number {
  return Math.min(Math.max(Date.parse(text ?? ""), FIRST_INSTANT_MS), LAST_INSTANT_MS);
}
