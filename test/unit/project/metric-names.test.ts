import { globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { allMetrics } from "../../../docs/reference/generator/metrics.ts";

const metrics = Object.values(allMetrics()).flat();
const endsInTotal = ({ name }: { readonly name: string }) => name.endsWith("_total");

/** https://prometheus.io/docs/practices/naming/ */
describe("the name of a metric", () => {
  it("ends in _total if the metric is a counter", () => {
    const counters = metrics.filter(({ type }) => type === "counter");
    expect(counters.length).toBeGreaterThan(10);
    expect(counters.filter((each) => !endsInTotal(each))).toEqual([]);
  });

  it("does not end in _total if the metric can decrease", () => {
    expect(metrics.filter((each) => each.type !== "counter" && endsInTotal(each))).toEqual([]);
  });
});

// A search for a series that does not exist finds nothing, so a check of its value could not fail.
it("a metric that a test names exists, or one exists that begins with the name", () => {
  const series = metrics.flatMap(({ name }) => ["", "_bucket", "_sum", "_count"].map((end) => name + end));
  const prefixes = new Set(metrics.map(({ name }) => name.slice(0, name.indexOf("_"))));
  const pattern = new RegExp(`\\b(?:${[...prefixes].join("|")})_[a-z_]+`, "g");
  const named = globSync("test/**/*.ts").flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(pattern)].map(([name]) => `${file}: ${name}`),
  );
  expect(named.length).toBeGreaterThan(50);
  const isUnknown = (name: string) => !series.some((each) => each.startsWith(name));
  expect(named.filter((each) => isUnknown(each.slice(each.indexOf(": ") + 2)))).toEqual([]);
});
