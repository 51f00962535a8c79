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
