import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { allMetrics, seriesOf } from "../../docs/reference/generator/metrics.ts";
import { EVENT_LOOP_PRECISION_MS } from "../../src/telemetry/process-metrics.ts";
import { alerts, dashboardQueries } from "./queries.ts";

const RUNBOOKS = new URL("../../docs/runbooks/", import.meta.url);

/** Names of all documented series of the two processes; metrics.test.ts checks that they exist. */
const OWN = new Set(Object.values(allMetrics()).flat().flatMap(seriesOf));

function seriesIn(expr: string): string[] {
  return [...expr.matchAll(/([a-z_]\w*)\{/g)].map(([, name = ""]) => name);
}

describe("the alerts", () => {
  it("have one runbook each, and every runbook has an alert", async () => {
    const names = (await alerts()).map(({ alert }) => alert);
    expect(readdirSync(RUNBOOKS).sort()).toEqual(names.map((name) => `${name}.md`).sort());
    for (const { alert, annotations } of await alerts())
      expect(annotations["runbook_url"]).toBe(`https://example.com/runbooks/${alert}.md`);
  });

  it("select only this release, and have its labels", async () => {
    for (const { expr, labels } of await alerts()) {
      expect(labels).toMatchObject({ namespace: "pipe-scaling-system", release: "release" });
      const selectors = [...expr.matchAll(/\{([^}]*)\}/g)].map(([, selector]) => selector);
      for (const selector of selectors)
        expect(selector).toMatch(/^namespace="pipe-scaling-system", job="release"/);
    }
  });

  it("use only existing series, like the dashboard and the runbooks", async () => {
    const asked = [
      ...(await alerts()).map(({ expr }) => expr),
      ...dashboardQueries().map(({ expr }) => expr),
      ...readdirSync(RUNBOOKS).map((name) => readFileSync(new URL(name, RUNBOOKS), "utf8")),
    ].flatMap(seriesIn);
    expect(asked.length).toBeGreaterThan(30);
    // `up` comes from Prometheus.
    expect(asked.filter((name) => name !== "up" && !OWN.has(name))).toEqual([]);
  });
});

describe("the dashboard", () => {
  it("shows the event loop lag without the interval at which it is measured", () => {
    const [panel] = dashboardQueries().filter(({ title }) => title === "Event loop lag");
    expect(panel?.expr).toBe(
      `clamp_min(nodejs_eventloop_lag_p99_seconds{namespace="$namespace", job="$job"} - ${EVENT_LOOP_PRECISION_MS / 1000}, 0)`,
    );
  });
});
