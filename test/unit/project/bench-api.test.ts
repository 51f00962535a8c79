import { describe, expect, it } from "vitest";
import { requestsOf } from "../../../bench/api/requests.ts";
import { isMet, measuresTable } from "../../../bench/measure.ts";
import { compare, median, spread } from "../../../bench/statistics.ts";
import { table } from "../../../bench/table.ts";

describe("the statistics of the benchmarks", () => {
  it.each([
    { values: [3], expected: 3 },
    { values: [9, 1, 5], expected: 5 },
    { values: [4, 1, 3, 2], expected: 2.5 },
    // Sorted as numbers, not as strings.
    { values: [10, 9, 100], expected: 10 },
  ])("take the middle of $values as the median: $expected", ({ values, expected }) => {
    expect(median(values)).toBe(expected);
  });

  it("reject an empty list of values", () => {
    expect(() => median([])).toThrow("the median needs at least one value");
  });

  it("include the spread of the rounds", () => {
    expect(spread([5, 2, 9])).toEqual({ median: 5, least: 2, most: 9 });
  });

  it("compare values within each round, so that a slow round does not change the ratio", () => {
    const { ours, baseline, ratio } = compare([
      { ours: 90, baseline: 100 },
      { ours: 9, baseline: 10 },
      { ours: 80, baseline: 100 },
    ]);
    expect(ratio).toEqual({ median: 0.9, least: 0.8, most: 0.9 });
    expect([ours.median, baseline.median]).toEqual([80, 100]);
  });
});

describe("the table of the benchmarks", () => {
  it("is formatted as Markdown, with columns as wide as their widest cell", () => {
    expect(table(["what", "n"], [["a longer one", "1"], ["b"]])).toBe(
      ["| what         | n |", "| ------------ | - |", "| a longer one | 1 |", "| b            |   |"].join(
        "\n",
      ),
    );
  });

  it("shows whether each target is met, and nothing for rows without a target", () => {
    const comparison = compare([{ ours: 0.9, baseline: 1 }]);
    const format = String;
    const lines = measuresTable([
      { what: "speed", comparison, bar: { relation: "≥", ratio: 0.9 }, format },
      { what: "time", comparison, bar: { relation: "≤", ratio: 0.8 }, format },
      { what: "shown", comparison, format },
    ]).split("\n");
    const ends = lines.slice(2).map((line) =>
      line
        .split("|")
        .slice(-3, -1)
        .map((cell) => cell.trim()),
    );
    expect(ends).toEqual([
      ["≥ 0.90", "yes"],
      ["≤ 0.80", "no"],
      ["", ""],
    ]);
  });

  it("compares the exact ratio, not the rounded one, with the target", () => {
    expect(isMet({ relation: "≥", ratio: 0.9 }, 0.899)).toBe(false);
    expect(isMet({ relation: "≤", ratio: 1.2 }, 1.201)).toBe(false);
  });
});

describe("the requests of the load generator", () => {
  const known = { authorizations: ["Basic a", "Basic b"], paths: ["/v1/x", "/v1/y"] };
  const take = (count: number, strangerEach: number) => {
    const next = requestsOf({ ...known, strangerEach });
    return Array.from({ length: count }, () => String(next()));
  };

  it("use each key for each path in turn", () => {
    const four = take(4, 0);
    expect(new Set(four).size).toBe(4);
    expect(take(8, 0)).toEqual([...four, ...four]);
    expect(four).toContain("GET /v1/x HTTP/1.1\r\nHost: bench\r\nAuthorization: Basic b\r\n\r\n");
  });

  it("contain the given share of unknown keys, each with different credentials and a different network", () => {
    const strangers = take(300, 3).filter((request) => request.includes("X-Forwarded-For"));
    expect(strangers).toHaveLength(100);
    const valuesOf = (name: string) =>
      strangers.map((request) => new RegExp(`${name}: (.*)\r`).exec(request)?.[1]);
    expect(new Set(valuesOf("Authorization")).size).toBe(100);
    expect(new Set(valuesOf("X-Forwarded-For")).size).toBe(100);
  });
});
