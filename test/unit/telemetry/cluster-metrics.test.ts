import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { actionOf } from "../../../src/kube/call.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { clusterMetrics } from "../../../src/telemetry/cluster-metrics.ts";

const SECRETS = "/api/v1/namespaces/records/secrets";
const SCALINGS = "/apis/pipes.clouddb.dev/v1beta1/namespaces/pipes/pipescalings";

describe("a call to the cluster", () => {
  test.each<[string, string, KubeRequest]>([
    ["list", "secrets", { path: SECRETS, query: { limit: 500 } }],
    ["watch", "secrets", { path: SECRETS, query: { watch: true } }],
    ["get", "secrets", { path: `${SECRETS}/one` }],
    ["create", "secrets", { method: "POST", path: SECRETS }],
    ["update", "secrets", { method: "PUT", path: `${SECRETS}/one` }],
    ["delete", "secrets", { method: "DELETE", path: `${SECRETS}/one` }],
    ["patch", "pipescalings", { method: "PATCH", path: `${SCALINGS}/one` }],
    ["patch", "pipescalings/status", { method: "PATCH", path: `${SCALINGS}/one/status` }],
    ["list", "pipescalings", { path: "/apis/pipes.clouddb.dev/v1beta1/pipescalings" }],
    ["get", "namespaces", { path: "/api/v1/namespaces/one" }],
    ["get", "", { path: "/version" }],
  ])("is counted as %s of %j", (verb, resource, request) => {
    expect(actionOf(request)).toEqual({ verb, resource });
  });

  test("is counted with a separate code if it receives no response", async () => {
    const registry = new Registry();
    const call = { verb: "patch", resource: "pipescalings", method: "PATCH", host: "cluster:6443" };
    clusterMetrics(registry)({ ...call, code: 0, seconds: 5, date: undefined });
    const metrics = await registry.metrics();
    expect(metrics).toContain(
      'pipe_scaling_cluster_request_duration_seconds_count{verb="patch",resource="pipescalings",code="none"} 1',
    );
    expect(metrics).toContain(
      'rest_client_requests_total{code="<error>",method="PATCH",host="cluster:6443"} 1',
    );
  });
});
