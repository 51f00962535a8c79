import { describe, expect, it } from "vitest";
import { requestsOf as loadOf } from "../../../bench/api/requests.ts";
import {
  countsBetween,
  parseRequestCounts,
  requestsOf,
  sumOf,
  writesOf,
} from "../../../bench/controller/request-counts.ts";
import { isMet } from "../../../bench/measure.ts";
import { compare, median, spread } from "../../../bench/statistics.ts";

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

it("the benchmarks compare the exact ratio, not the rounded one, with the target", () => {
  expect(isMet({ relation: "≥", ratio: 0.9 }, 0.899)).toBe(false);
  expect(isMet({ relation: "≤", ratio: 1.2 }, 1.201)).toBe(false);
});

const sample = (verb: string, resource: string, subresource: string, code: number, value: number) =>
  `apiserver_request_total{code="${code}",component="apiserver",dry_run="",group="apps",resource="${resource}",scope="resource",subresource="${subresource}",verb="${verb}",version="v1"} ${value}`;

const METRICS = [
  "# HELP apiserver_request_total [STABLE] Counter of apiserver requests.",
  "# TYPE apiserver_request_total counter",
  sample("PATCH", "deployments", "", 200, 3000),
  sample("PATCH", "deployments", "", 409, 2),
  sample("PATCH", "pipescalings", "status", 200, 1000),
  sample("PATCH", "deployments", "", 200, 300).replace('dry_run=""', 'dry_run="All"'),
  sample("PUT", "leases", "", 200, 7),
  sample("WATCH", "pods", "", 0, 1.5e6),
  sample("GET", "", "", 200, 12),
  'apiserver_request_terminations_total{code="429",resource="deployments",verb="PATCH"} 4',
].join("\n");

describe("the counts of requests", () => {
  const counts = parseRequestCounts(METRICS);

  it("are read from the metrics of the API server, for every status code and only for resources", () => {
    expect(Object.fromEntries(counts)).toEqual({
      "PATCH deployments": 3002,
      "PATCH pipescalings/status": 1000,
      "DRY-RUN-PATCH deployments": 300,
      "PUT leases": 7,
      "WATCH pods": 1_500_000,
    });
  });

  it("include only the counters that increased or are new between two scrapes", () => {
    const before = new Map([
      ["PATCH deployments", 3000],
      ["PUT leases", 7],
    ]);
    expect(Object.fromEntries(countsBetween(before, counts))).toEqual({
      "PATCH deployments": 2,
      "PATCH pipescalings/status": 1000,
      "DRY-RUN-PATCH deployments": 300,
      "WATCH pods": 1_500_000,
    });
  });

  it("exclude reads and Leases if only writes are counted", () => {
    expect([...writesOf(counts).keys()]).toEqual(["PATCH deployments", "PATCH pipescalings/status"]);
    expect(sumOf(writesOf(counts))).toBe(4002);
  });

  it("include the subresources of a resource", () => {
    expect([...requestsOf(counts, ["pipescalings", "pods"]).keys()]).toEqual([
      "PATCH pipescalings/status",
      "WATCH pods",
    ]);
  });
});

describe("the requests of the load generator", () => {
  const known = { authorizations: ["Basic a", "Basic b"], paths: ["/v1/x", "/v1/y"] };
  const take = (count: number, strangerEach: number) => {
    const next = loadOf({ ...known, strangerEach });
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
