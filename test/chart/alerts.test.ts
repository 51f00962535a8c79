import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { valuesSchema } from "../../deploy/chart/generated.ts";
import { allMetrics, seriesOf } from "../../docs/reference/generator/metrics.ts";
import { FALLBACK_REASON_TABLE, FALLBACK_REASONS } from "../../src/crd/fallback-reasons.ts";
import { EVENT_LOOP_PRECISION_MS } from "../../src/telemetry/process-metrics.ts";
import { alerts, dashboardQueries } from "./queries.ts";

const RUNBOOKS = new URL("../../docs/runbooks/", import.meta.url);

/** Names of all documented series of the two processes; metrics.slow.test.ts checks that they exist. */
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

  it("ignore exactly the fallback reasons that the table declares as expected", async () => {
    const { expr = "" } = (await alerts()).find(({ alert }) => alert === "PipeScalingInPlaceFallbacks") ?? {};
    const patterns = [...expr.matchAll(/reason!~"([^"]*)"/g)].map(([, pattern = ""]) => pattern);
    expect(patterns).toHaveLength(2);
    const expected = FALLBACK_REASONS.filter((reason) => FALLBACK_REASON_TABLE[reason].isExpected);
    for (const pattern of patterns) {
      const isIgnored = new RegExp(`^(?:${pattern})$`);
      expect(FALLBACK_REASONS.filter((reason) => isIgnored.test(reason))).toEqual(expected);
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

describe("monitoring.prometheusRule.alerts", () => {
  const settings = valuesSchema().properties?.["monitoring"]?.properties?.["prometheusRule"]?.properties;
  const values = Object.entries(settings?.["alerts"]?.properties ?? {});
  const path = "monitoring.prometheusRule.alerts";

  it("has every alert", async () => {
    expect(values.map(([name]) => name).sort()).toEqual((await alerts()).map(({ alert }) => alert).sort());
  });

  it.each(values)("disables only %s with enabled=false", async (name) => {
    const all = (await alerts()).map(({ alert }) => alert);
    const others = await alerts("--set", `${path}.${name}.enabled=false`);
    expect(others.map(({ alert }) => alert)).toEqual(all.filter((each) => each !== name));
  });

  it("leaves no PrometheusRule if all alerts are disabled", async () => {
    expect(await alerts(...values.flatMap(([name]) => ["--set", `${path}.${name}.enabled=false`]))).toEqual(
      [],
    );
  });

  const thresholds = values.flatMap(([name, { properties = {} }]) =>
    Object.keys(properties)
      .filter((key) => key !== "enabled")
      .map((key) => [name, key] as const),
  );

  it.each(thresholds)("puts the value of %s.%s into the expression", async (name, key) => {
    // A certificate must be renewed before the alert about its expiry fires.
    const certificate = "api.tls.certificate.duration=8760h,api.tls.certificate.renewBefore=2160h";
    const found = await alerts("--set", `${path}.${name}.${key}=77,${certificate}`);
    expect(found.find(({ alert }) => alert === name)?.expr).toMatch(/[<>] 77( |$)/m);
  });

  it("accepts thresholds with fractions in a values file", async () => {
    const found = await alerts("--set-json", `${path}.PipeScalingApiSlow.threshold=0.25`);
    expect(found.find(({ alert }) => alert === "PipeScalingApiSlow")?.expr).toMatch(/> 0\.25$/m);
  });

  it("explains the thresholds in the descriptions", async () => {
    const set = `${path}.PipeScalingApiErrors.threshold=50,${path}.PipeScalingQueueSlow.threshold=90`;
    const descriptions = (await alerts("--set", set)).map(({ annotations }) => annotations["description"]);
    expect(descriptions).toContainEqual(expect.stringContaining("More than 50% of the requests"));
    expect(descriptions).toContainEqual(expect.stringContaining("more than {{ 90 | humanizeDuration }}"));
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
