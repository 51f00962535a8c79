/*
 * Objects and responses contain times as RFC 3339 text, in which a year has four digits. `9999-12-31T23:59:59-12:00` is
 * valid, but the same time cannot be written in UTC: the API server rejects `+010000-01-01T11:59:59Z`, and with it the
 * whole status.
 */

/** The first time that can be written in UTC, in milliseconds since 1970. */
export const FIRST_INSTANT_MS = Date.parse("0000-01-01T00:00:00Z");
/** The last time that can be written in UTC, in milliseconds since 1970. */
export const LAST_INSTANT_MS = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Parses a time that another writer wrote. Returns milliseconds since 1970, limited to the times that can be written in
 * UTC; NaN if the text is missing or not a time.
 */
export function parseInstant(text: string | undefined): number {
  return Math.min(Math.max(Date.parse(text ?? ""), FIRST_INSTANT_MS), LAST_INSTANT_MS);
}
