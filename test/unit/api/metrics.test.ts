import { Registry } from "prom-client";
import { beforeEach, describe, expect, it } from "vitest";
import { ApiMetrics } from "../../../src/api/metrics.ts";

const ROUTE = "/v1/organizations";

let registry: Registry;
let metrics: ApiMetrics;

beforeEach(() => {
  registry = new Registry();
  metrics = new ApiMetrics(registry);
});

async function samples(name: string): Promise<string[]> {
  const text = await registry.getSingleMetricAsString(name);
  return text.split("\n").filter((line) => !line.startsWith("#"));
}

describe("the metrics of the API", () => {
  it("include every authentication result and limit with the value 0 before the first request", async () => {
    expect(await samples("pipe_scaling_authentications_total")).toEqual([
      'pipe_scaling_authentications_total{result="accepted"} 0',
      'pipe_scaling_authentications_total{result="absent"} 0',
      'pipe_scaling_authentications_total{result="refused"} 0',
      'pipe_scaling_authentications_total{result="unknown"} 0',
    ]);
    expect(await samples("pipe_scaling_limit_hits_total")).toEqual([
      'pipe_scaling_limit_hits_total{limit="key"} 0',
      'pipe_scaling_limit_hits_total{limit="source"} 0',
    ]);
  });

  it("include the expiration time of the TLS certificate, which is +Inf with plain HTTP", async () => {
    const name = "pipe_scaling_certificate_expiration_timestamp_seconds";
    expect(await samples(name)).toEqual([`${name} +Inf`]);
    metrics.certificateInstalled(new Date("2030-01-01T00:00:00Z"));
    expect(await samples(name)).toEqual([`${name} 1893456000`]);
  });

  it("count requests by method, route and status", async () => {
    const complete = (method: string, status: number, route?: string) =>
      metrics.requestCompleted({
        request: { method, headers: {} },
        context: { key: route === undefined ? undefined : {}, isNotYet: false },
        route,
        status,
        durationMs: 1,
      });
    for (const method of ["GET", "GET", "PROPFIND"]) complete(method, 200, ROUTE);
    complete("GET", 429, ROUTE);
    complete("GET", 401);
    metrics.malformedRequest(400);
    expect(await samples("pipe_scaling_http_requests_total")).toEqual([
      `pipe_scaling_http_requests_total{method="GET",route="${ROUTE}",code="200"} 2`,
      `pipe_scaling_http_requests_total{method="other",route="${ROUTE}",code="200"} 1`,
      `pipe_scaling_http_requests_total{method="GET",route="${ROUTE}",code="429"} 1`,
      'pipe_scaling_http_requests_total{method="GET",route="none",code="401"} 1',
      'pipe_scaling_http_requests_total{method="none",route="none",code="400"} 1',
    ]);
    expect(await samples("pipe_scaling_authentications_total")).toContain(
      'pipe_scaling_authentications_total{result="absent"} 1',
    );
    expect(await samples("pipe_scaling_limit_hits_total")).toContain(
      'pipe_scaling_limit_hits_total{limit="key"} 1',
    );
  });

  it("sort durations into cumulative buckets, a duration on a bound into its bucket", async () => {
    for (const durationMs of [0.5, 0.6, 40, 20_000]) {
      metrics.requestCompleted({
        request: { method: "GET", headers: {} },
        context: { key: {}, isNotYet: false },
        route: ROUTE,
        status: 200,
        durationMs,
      });
    }
    metrics.malformedRequest(400);
    const name = "pipe_scaling_http_request_duration_seconds";
    const labels = `method="GET",route="${ROUTE}"`;
    const expected: [string, number][] = [
      ["0.0005", 1],
      ["0.001", 2],
      ["0.0025", 2],
      ["0.005", 2],
      ["0.01", 2],
      ["0.025", 2],
      ["0.05", 3],
      ["0.1", 3],
      ["0.25", 3],
      ["0.5", 3],
      ["1", 3],
      ["2.5", 3],
      ["5", 3],
      ["10", 3],
      ["+Inf", 4],
    ];
    const lines = await samples(name);
    expect(lines.slice(0, -2)).toEqual(
      expected.map(([le, count]) => `${name}_bucket{le="${le}",${labels}} ${count}`),
    );
    expect(lines.at(-2)).toMatch(`${name}_sum{${labels}} 20.0411`);
    expect(lines.at(-1)).toBe(`${name}_count{${labels}} 4`);
  });

  it("count the 503 responses that are no failure of the API separately, from 0", async () => {
    const name = "pipe_scaling_size_not_reached_total";
    expect(await samples(name)).toEqual([`${name} 0`]);
    for (const isNotYet of [true, false, true]) {
      const request = { method: "GET", headers: {} };
      metrics.requestCompleted({
        request,
        context: { key: {}, isNotYet },
        route: ROUTE,
        status: 503,
        durationMs: 1,
      });
    }
    expect(await samples(name)).toEqual([`${name} 2`]);
    expect(await samples("pipe_scaling_http_requests_total")).toEqual([
      `pipe_scaling_http_requests_total{method="GET",route="${ROUTE}",code="503"} 3`,
    ]);
  });
});
