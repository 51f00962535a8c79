import { readdirSync, readFileSync } from "node:fs";
import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { ApiMetrics } from "../../src/api/metrics.ts";
import { ControllerMetrics } from "../../src/controller/metrics.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { clusterMetrics } from "../../src/telemetry/cluster-metrics.ts";
import { RuntimeMetrics } from "../../src/telemetry/runtime-metrics.ts";
import { CHART, rendered, valuesFile } from "./tools.ts";

const RUNBOOKS = new URL("../../docs/runbooks/", import.meta.url);
/** Of Prometheus itself, and of every Node process. */
const FOREIGN = ["up", "process_resident_memory_bytes", "process_cpu_seconds_total"];

const rules = z.object({
  spec: z.object({
    groups: z.tuple([
      z.object({
        rules: z.array(
          z.object({
            alert: z.string(),
            expr: z.string(),
            labels: z.record(z.string(), z.string()),
            annotations: z.record(z.string(), z.string()),
          }),
        ),
      }),
    ]),
  }),
});

const dashboard = z.object({
  panels: z.array(
    z.object({ title: z.string(), targets: z.array(z.object({ expr: z.string() })).default([]) }),
  ),
});

async function alerts() {
  const [rule] = await rendered(
    "--values",
    valuesFile("everything"),
    "--show-only",
    "templates/prometheusrule.yaml",
  );
  return rules.parse(rule).spec.groups[0].rules;
}

/** Names of all series that the two processes have. */
async function ownSeries(): Promise<ReadonlySet<string>> {
  const registry = new Registry();
  new ApiMetrics(registry).watchCaches(() => []);
  new ControllerMetrics(registry, systemClock);
  clusterMetrics(registry);
  const runtime = new RuntimeMetrics({ registry, name: "pipescaling", concurrency: 1 });
  runtime.watchQueue({ depth: 0, underWay: () => [] });
  runtime.watchLeader({ isLeader: true });
  const metrics = await registry.getMetricsAsJSON();
  return new Set(
    metrics.flatMap(({ name, type }) =>
      String(type) === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

function seriesIn(expr: string): string[] {
  return [...expr.matchAll(/([a-z_]+)\{/g)].map(([, name = ""]) => name);
}

describe("the alerts", () => {
  it("have a runbook each, and no runbook is without an alert", async () => {
    const names = (await alerts()).map(({ alert }) => alert);
    expect(readdirSync(RUNBOOKS).sort()).toEqual(names.map((name) => `${name}.md`).sort());
    for (const { alert, annotations } of await alerts())
      expect(annotations["runbook_url"]).toBe(`https://example.com/runbooks/${alert}.md`);
  });

  it("are about this release alone, and say which it is", async () => {
    for (const { expr, labels } of await alerts()) {
      expect(labels).toMatchObject({ namespace: "pipe-scaling-system", release: "release" });
      const selectors = [...expr.matchAll(/\{([^}]*)\}/g)].map(([, selector]) => selector);
      for (const selector of selectors)
        expect(selector).toMatch(/^namespace="pipe-scaling-system", job="release"/);
    }
  });

  it("and the dashboard and the runbooks ask for series that there are", async () => {
    const own = await ownSeries();
    const { panels } = dashboard.parse(JSON.parse(readFileSync(`${CHART}/files/dashboard.json`, "utf8")));
    const asked = [
      ...(await alerts()).map(({ expr }) => expr),
      ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
      ...readdirSync(RUNBOOKS).map((name) => readFileSync(new URL(name, RUNBOOKS), "utf8")),
    ].flatMap(seriesIn);
    expect(asked.length).toBeGreaterThan(30);
    expect(asked.filter((name) => !own.has(name) && !FOREIGN.includes(name))).toEqual([]);
  });
});
