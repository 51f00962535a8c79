import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { parseApiKey } from "../../../src/records/api-key.ts";
import { keyRecord } from "../../support/fixtures/records.ts";

/** The key of a record with this end of its validity. */
function parsed(expireAt: string) {
  const { record } = keyRecord({ organizationId: randomUUID() });
  const data = Object.entries({ ...record.stringData, expireAt }).map(([key, text]) => [
    key,
    Buffer.from(String(text)).toString("base64"),
  ]);
  return parseApiKey(record.metadata.name, record.metadata.labels, Object.fromEntries(data));
}

const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;

describe("a date and time in a record", () => {
  it.each([
    ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000Z"],
    ["2026-01-31T12:00:00+23:59", "2026-01-30T12:01:00.000Z"],
    ["2026-01-31T12:00:00-00:00", "2026-01-31T12:00:00.000Z"],
    ["2028-02-29T00:00:00Z", "2028-02-29T00:00:00.000Z"],
    ["0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"],
    ["0001-01-01T00:00:00+23:59", "0000-12-31T00:01:00.000Z"],
    ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.000Z"],
    ["9999-12-31T23:59:59.9999999Z", "9999-12-31T23:59:59.999Z"],
    ["9999-12-31T23:59:59+00:01", "9999-12-31T23:58:59.000Z"],
  ])("such as %s is %s in UTC", (text, utc) => {
    const key = parsed(text);
    const shown = key.ok ? key.value.expireAt?.toISOString() : key.problem;
    expect(shown).toBe(utc);
    expect(shown).toMatch(RFC3339);
  });

  it.each(["9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01"])(
    "such as %s is rejected, because its year in UTC does not have four digits",
    (text) => {
      expect(parsed(text)).toEqual({
        ok: false,
        problem: "expireAt: must be in the years 0000 to 9999 in UTC",
      });
    },
  );

  it.each([
    "2026-12-31T23:59:60Z",
    "2026-01-31T24:00:00Z",
    "2026-02-29T00:00:00Z",
    "2026-01-31T12:00:00+24:00",
    "2026-01-31T12:00:00+23:60",
    "2026-01-31T12:00:00",
    "+010000-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
    "-000001-01-01T00:00:00Z",
    "26-01-31T12:00:00Z",
    "2026-1-31T12:00:00Z",
    "2026-01-31",
    "now",
  ])("such as %s is rejected with an example", (text) => {
    const problem = "expireAt: must be a date and time such as 2026-01-31T12:00:00Z";
    expect(parsed(text)).toEqual({ ok: false, problem });
  });
});
