import { describe, expect, it } from "vitest";
import { countsTable } from "../../../bench/controller/counts-table.ts";
import {
  countsBetween,
  describeCounts,
  parseOpenWatches,
  parseRequestCounts,
  requestsOf,
  sumOf,
  writesOf,
} from "../../../bench/controller/request-counts.ts";
import { inParallel } from "../../../bench/in-parallel.ts";

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

  it("report open watches separately", () => {
    const open = (verb: string, resource: string, value: number) =>
      `apiserver_longrunning_requests{component="apiserver",resource="${resource}",verb="${verb}"} ${value}`;
    const metrics = [open("WATCH", "pods", 3), open("WATCH", "nodes", 5), open("CONNECT", "pods", 7)];
    expect(parseOpenWatches(metrics.join("\n"), ["pods", "replicasets"])).toBe(3);
    expect(parseOpenWatches(METRICS, ["pods"])).toBe(0);
  });

  it("include the subresources of a resource", () => {
    expect([...requestsOf(counts, ["pipescalings", "pods"]).keys()]).toEqual([
      "PATCH pipescalings/status",
      "WATCH pods",
    ]);
  });

  it("are printed in descending order", () => {
    expect(describeCounts(writesOf(counts))).toBe("3,002 PATCH deployments, 1,000 PATCH pipescalings/status");
    expect(describeCounts(new Map())).toBe("none");
  });
});

describe("the table of counts", () => {
  it("shows which targets are met, and nothing for rows without a target", () => {
    const counts = new Map([["PATCH deployments", 4]]);
    const table = countsTable([
      { what: "at the bar", measured: 4, most: 4, counts },
      { what: "above it", measured: 4.005, most: 4, counts },
      { what: "only shown", measured: 1234, counts: new Map() },
    ]);
    const cells = table.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
    expect(cells.slice(2).map((row) => row.slice(1, -1))).toEqual([
      ["at the bar", "4", "≤ 4", "yes", "4 PATCH deployments"],
      ["above it", "4.01", "≤ 4", "no", "4 PATCH deployments"],
      ["only shown", "1,234", "", "", "none"],
    ]);
  });
});

describe("inParallel", () => {
  it("handles each item once and in order, and never exceeds the concurrency limit", async () => {
    const begun: number[] = [];
    let underWay = 0;
    let most = 0;
    await inParallel(3, [1, 2, 3, 4, 5, 6, 7], async (item) => {
      begun.push(item);
      underWay += 1;
      most = Math.max(most, underWay);
      await Promise.resolve();
      underWay -= 1;
    });
    expect(begun).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(most).toBe(3);
  });

  it("fails as soon as one item fails", async () => {
    const work = inParallel(2, [1, 2], (item) =>
      item === 2 ? Promise.reject(new Error("two")) : Promise.resolve(),
    );
    await expect(work).rejects.toThrow("two");
  });
});
