import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ApiResponse } from "./client.ts";
import {
  type ApiEnvironment,
  clientOfText,
  createApiEnvironment,
  type RunningApi,
  type Tenant,
} from "./environment.ts";

const run = promisify(execFile);

/** A call to the cluster takes at most 5 s (docs/reference/contract.md#limits); the rest is a margin. */
const MAX_RESPONSE_MS = 8000;

let cluster: Cluster;
let environment: ApiEnvironment;
let api: RunningApi;
let tenant: Tenant;

beforeAll(async () => {
  // A cluster of its own, because the tests kill its API server.
  cluster = await startCluster({ controllerManager: false, progress: silentProgress });
  environment = await createApiEnvironment("outage", cluster);
  tenant = await environment.addTenant();
  api = await environment.startReadyApi();
});

afterAll(async () => {
  await api?.stop();
  await cluster?.stop();
});

function read(): Promise<ApiResponse> {
  return api.send({ path: tenant.path, authorization: tenant.admin.authorization });
}

function patch(cores: number): Promise<ApiResponse> {
  const { path, admin } = tenant;
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ replicaCpuMillicores: cores * 1000 });
  return api.send({ method: "PATCH", path, authorization: admin.authorization, headers, body });
}

async function expectReadsOnly(): Promise<void> {
  const begun = performance.now();
  const refused = await patch(9);
  expect(refused).toMatchObject({ status: 503, body: { status: 503 } });
  expect(refused.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
  expect(performance.now() - begun).toBeLessThan(MAX_RESPONSE_MS);
  expect(await read()).toMatchObject({ status: 200, body: { result: { replicaCpuMillicores: 2000 } } });
  expect((await clientOfText(api.opsUrl)("/readyz")).status).toBe(200);
}

test("while the API server hangs, reads succeed and writes fail within the time limit; then both succeed again", async () => {
  const pid = cluster.pid("kube-apiserver");
  process.kill(pid, "SIGSTOP");
  try {
    // The threads of the process may continue to run briefly after the signal.
    const isStopped = async () => (await run("ps", ["-o", "stat=", "-p", `${pid}`])).stdout.startsWith("T");
    await waitFor(isStopped, { what: "the API server to hang" });
    await expectReadsOnly();
    expect((await clientOfText(api.opsUrl)("/metrics")).text).toMatch(
      /^pipe_scaling_cluster_request_duration_seconds_count\{verb="patch",resource="pipescalings",code="none"\} 1$/m,
    );
  } finally {
    process.kill(pid, "SIGCONT");
  }
  // The write that timed out may still take effect, because the API server's socket has received it.
  const isAccepted = async () =>
    (await patch(3)).status === 200 &&
    (await environment.scaling(tenant.serviceId)).spec?.replicaCpuMillicores === 3000;
  await waitFor(isAccepted, { what: "the API to accept a write" });
});

test("while the API server is down, reads succeed and writes fail; then the watches resume", async () => {
  await cluster.kill("kube-apiserver");
  await expectReadsOnly();
  await cluster.revive();
  await waitFor(async () => (await patch(4)).status === 200, { what: "the API to accept a write" });
  await environment.report(tenant.serviceId, 4);
  await waitFor(async () => (await read()).text.includes("4000"), {
    what: "the API to see the new size",
    timeoutMs: 60_000,
  });
});
