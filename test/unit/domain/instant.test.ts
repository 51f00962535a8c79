import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseInstant } from "../../../src/domain/instant.ts";

describe("a time that another writer wrote", () => {
  it.each([
    ["9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.999Z"],
    ["+275760-09-13T00:00:00Z", "9999-12-31T23:59:59.999Z"],
    ["0000-01-01T00:00:00+12:00", "0000-01-01T00:00:00.000Z"],
    ["2026-01-31T20:00:00.5+02:00", "2026-01-31T18:00:00.500Z"],
  ])("%s is read as %s", (text, read) => {
    expect(new Date(parseInstant(text)).toISOString()).toBe(read);
  });

  it.each([undefined, "", "tomorrow", "2030-01-01T00:00:00+99:99"])("%s is no time", (text) => {
    expect(parseInstant(text)).toBeNaN();
  });

  it("has a year of four digits in UTC, whatever its offset", () => {
    const two = (max: number) => fc.integer({ min: 0, max }).map((each) => String(each).padStart(2, "0"));
    const years = fc.integer({ min: 0, max: 9999 }).map((year) => String(year).padStart(4, "0"));
    const offsets = fc.tuple(fc.constantFrom("+", "-"), two(23), two(59));
    fc.assert(
      fc.property(years, fc.constantFrom("01-01", "12-31"), two(23), offsets, (year, day, hour, offset) => {
        const [sign, hours, minutes] = offset;
        const ms = parseInstant(`${year}-${day}T${hour}:30:00${sign}${hours}:${minutes}`);
        expect(new Date(ms).toISOString()).toMatch(/^\d{4}-\d{2}-\d{2}T/);
      }),
    );
  });
});
