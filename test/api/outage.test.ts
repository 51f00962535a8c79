import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Answer } from "./client.ts";
import { clientOfText, createWorld, type RunningApi, type World } from "./world.ts";

/** A call to the cluster takes at most 5 s (docs/reference/contract.md#limits); the rest is for busy machines. */
const ANSWERED_WITHIN_MS = 8000;

let cluster: Cluster;
let world: World;
let api: RunningApi;
let path: string;
let authorization: string;
let service: string;

beforeAll(async () => {
  cluster = await startCluster({ controllerManager: false, progress: silentProgress });
  world = await createWorld("outage", cluster);
  const organizationId = await world.addOrganization();
  service = await world.addService(organizationId);
  ({ authorization } = await world.addKey({ organizationId }));
  await world.addScaling(service, {}, 2);
  path = `/v1/organizations/${organizationId}/services/${service}/pipesCdcScaling`;
  api = await world.startReadyApi();
  await waitFor(async () => (await read()).status === 200, { what: "the service to be known" });
});

afterAll(async () => {
  await api?.stop();
  await cluster?.stop();
});

function read(): Promise<Answer> {
  return api.ask({ path, authorization });
}

function patch(cores: number): Promise<Answer> {
  const headers = { "Content-Type": "application/json" };
  const body = JSON.stringify({ replicaCpuMillicores: cores * 1000 });
  return api.ask({ method: "PATCH", path, authorization, headers, body });
}

async function expectReadsOnly(): Promise<void> {
  const begun = performance.now();
  const refused = await patch(9);
  expect(refused).toMatchObject({ status: 503, body: { status: 503 } });
  expect(refused.headers["retry-after"]).toMatch(/^[1-9]\d*$/);
  expect(performance.now() - begun).toBeLessThan(ANSWERED_WITHIN_MS);
  expect(await read()).toMatchObject({ status: 200, body: { result: { replicaCpuMillicores: 2000 } } });
  expect((await clientOfText(api.opsUrl)("/readyz")).status).toBe(200);
}

test("an API server that no longer answers: reads go on, writes are refused in time, and all is well after", async () => {
  const pid = cluster.pid("kube-apiserver");
  process.kill(pid, "SIGSTOP");
  try {
    await expectReadsOnly();
    expect((await clientOfText(api.opsUrl)("/metrics")).text).toMatch(
      /^pipe_scaling_cluster_request_duration_seconds_count\{verb="patch",resource="pipescalings",code="none"\} 1$/m,
    );
  } finally {
    process.kill(pid, "SIGCONT");
  }
  // The one that was given up may still be made: the API server had it in its socket.
  const isAccepted = async () =>
    (await patch(3)).status === 200 && (await world.scaling(service)).spec?.replicaCpuMillicores === 3000;
  await waitFor(isAccepted, { what: "a write to be accepted" });
});

test("an API server that is dead, and comes back: the same, and what changes then is seen", async () => {
  await cluster.kill("kube-apiserver");
  await expectReadsOnly();
  await cluster.revive();
  await waitFor(async () => (await patch(4)).status === 200, { what: "a write to be accepted" });
  await world.report(service, 4);
  await waitFor(async () => (await read()).text.includes("4000"), {
    what: "the watch to go on",
    timeoutMs: 60_000,
  });
});
