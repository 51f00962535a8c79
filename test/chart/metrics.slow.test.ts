import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { allMetrics } from "../../docs/reference/generator/metrics.ts";
import { ApiEnvironment, clientOfText, type RunningApi } from "../api/environment.ts";
import { basic } from "../support/fixtures/records.ts";
import { TestEnvironment } from "../support/test-environment.ts";
import { BUILD_MS, checkers } from "./checkers/build.ts";
import { type Exposition, expositionOf, seriesInPrometheus } from "./exposition.ts";
import { alerts, dashboardQueries } from "./queries.ts";

let controlled: TestEnvironment;
let apiEnvironment: ApiEnvironment;
let api: RunningApi;
let folder: string;
/** Metrics of the two processes after a run with every kind of event. */
let exposed: Readonly<Record<"api" | "controller", Exposition>>;
/** The metrics that a customer's own Prometheus scrapes. */
let ofCustomer: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "pipe-scaling-metrics-"));
  controlled = await TestEnvironment.create();
  const { records, pipes, organizationId, serviceId } = controlled;
  apiEnvironment = await new ApiEnvironment({ records, pipes }).create();
  api = await apiEnvironment.startReadyApi();
  await controlled.startController();

  const { authorization } = await apiEnvironment.addKey({ organizationId });
  const path = `/v1/organizations/${organizationId}/services/${serviceId}/pipesCdcScaling`;
  await controlled.createPipe({ name: "orders", cores: 1 });
  await controlled.waitForCondition("Ready", "True", "Scaled");
  await waitFor(async () => (await api.send({ path, authorization })).status === 200, {
    what: "the API to see the service",
  });
  const headers = { "Content-Type": "application/json" };
  const body = '{"replicaCpuMillicores":2000}';
  const { status } = await api.send({ method: "PATCH", path, authorization, headers, body });
  expect(status).toBe(200);
  await controlled.waitForCondition("Ready", "True", "Scaled");
  await api.send({ path, authorization: basic("A".repeat(20), "wrong") });
  const broken = await apiEnvironment.addService(organizationId);
  await controlled.createPipe({ name: "unclear", serviceId: broken, containers: ["one", "other"] });
  await waitFor(
    async () =>
      (await controlled.scrape()).includes('pipe_scaling_failures_total{reason="ContainerUnclear"} 1'),
    { what: "the failure to be counted" },
  );

  const customers = `/v1/organizations/${organizationId}/prometheus`;
  ofCustomer = (await api.send({ path: customers, authorization })).text;
  exposed = {
    api: expositionOf((await clientOfText(api.opsUrl)("/metrics")).text),
    controller: expositionOf(await controlled.scrape()),
  };
});

afterAll(async () => {
  await api?.stop();
  await controlled?.end();
  await apiEnvironment?.admin.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("the metrics of the processes", () => {
  const { api: ofApi, controller: ofController, both, node } = allMetrics();
  const documented = { api: [...ofApi, ...both, ...node], controller: [...ofController, ...both, ...node] };

  it.each(["api", "controller"] as const)(
    "are those of docs/reference/metrics.md for the %s",
    (component) => {
      const { types } = exposed[component];
      expect([...types].sort()).toEqual(documented[component].map(({ name, type }) => [name, type]).sort());
    },
  );

  it.each(["api", "controller"] as const)(
    "have series with exactly the documented labels for each metric of the %s",
    (component) => {
      const { samples } = exposed[component];
      const own = documented[component].filter((each) => !node.includes(each));
      const labelsOf = (name: string, type: string) =>
        samples
          .filter((sample) => sample.name === (type === "histogram" ? `${name}_count` : name))
          .map(({ labels }) => [...labels.keys()].sort().join());
      for (const { name, type, labelNames } of own) {
        expect([name, ...new Set(labelsOf(name, type))]).toEqual([name, labelNames.toSorted().join()]);
      }
    },
  );
});

describe("Prometheus with the scraped metrics", () => {
  let promtool: string;
  beforeAll(async () => {
    promtool = (await checkers())("promtool");
  }, BUILD_MS);

  /** Checks with the engine of Prometheus that each expression has a value. */
  async function evaluate(expressions: readonly string[]): Promise<string> {
    const up = ["api", "controller"].map((container) => ({
      series: `up{namespace="pipe-scaling-system", job="release", container="${container}"}`,
      values: "1 1",
    }));
    const test = {
      interval: "1m",
      input_series: [
        ...up,
        ...Object.entries(exposed).flatMap(([of, exposition]) => seriesInPrometheus(of, exposition)),
      ],
      promql_expr_test: expressions.map((expr) => ({
        expr: `count(${expr}) > bool 0`,
        eval_time: "1m",
        exp_samples: [{ labels: "{}", value: 1 }],
      })),
    };
    writeFileSync(join(folder, "queries.yaml"), stringify({ rule_files: [], tests: [test] }));
    const { stdout, stderr } = await run(promtool, ["test", "rules", "queries.yaml"], {
      env: environment,
      cwd: folder,
    });
    return (stdout + stderr).trim();
  }

  const SUCCESS = /^SUCCESS$/;

  it("accepts the metrics of customers without a finding", async () => {
    const check = (input: string) =>
      run(promtool, ["check", "metrics"], { env: environment, cwd: folder, input });
    expect(ofCustomer).toContain("pipe_scaling_service_compute_units{");
    expect(await check(ofCustomer)).toMatchObject({ code: 0, stdout: "", stderr: "" });
    const { code } = await check(ofCustomer.replaceAll("service_pipes", "service_pipes_total"));
    expect(code).not.toBe(0);
  });

  it("has data for every panel of the dashboard", async () => {
    const queries = dashboardQueries().map(({ expr }) =>
      expr
        .replaceAll("$namespace", "pipe-scaling-system")
        .replaceAll("$job", "release")
        .replaceAll("$__rate_interval", "5m"),
    );
    expect(queries.length).toBeGreaterThan(25);
    expect(await evaluate(queries)).toMatch(SUCCESS);
  });

  it("has every series of the alerts, regardless of the responses", async () => {
    const selectors = (await alerts()).flatMap(({ expr }) => expr.match(/[a-z_]+\{[^}]*\}/g) ?? []);
    expect(selectors.length).toBeGreaterThan(12);
    expect(await evaluate(selectors.map((each) => each.replaceAll(/=~"[^"]*"/g, '=~".+"')))).toMatch(SUCCESS);
  });

  it("detects a missing metric and a missing label", async () => {
    const output = await evaluate(["pipe_scaling_pipe", 'pipe_scaling_pipes{status="done"}']);
    expect(output.match(/got: *nil/g)).toHaveLength(2);
  });
});
