import { createServer } from "node:net";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { SECRETS } from "../../src/kube/paths.ts";
import { type SpawnedApi, spawnApi } from "../api/spawned-api.ts";
import { startFakeCollector } from "../support/fakes/fake-collector.ts";
import { keyRecord } from "../support/fixtures/records.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";

const pipes = ["pipe-a", "pipe-b", "pipe-c"];

let environment: TestEnvironment;
let api: SpawnedApi | undefined;
beforeEach(async () => {
  environment = await TestEnvironment.create("basic");
});
afterEach(async () => {
  await api?.stop();
  api = undefined;
  await environment.end();
});

/** Starts both processes and a service with running pipes. Returns a function that requests a size and returns the request id. */
async function start(otlpEndpoint: string): Promise<(cores: number) => Promise<string>> {
  await environment.startController({ otlpEndpoint });
  for (const name of pipes) await environment.createPipe({ name, cores: 1 });
  await environment.waitForCondition("Ready", "True");
  const { organizationId, serviceId, records, cluster } = environment;
  const { record, authorization } = keyRecord({ organizationId });
  await environment.create(SECRETS, records, record);
  const flags = ["--rate-limit", "0", "--failed-logins", "0", "--otlp-endpoint", otlpEndpoint];
  api = await spawnApi({ records, kubeconfig: cluster.kubeconfig }, { flags });
  const { send } = api;
  const path = `/v1/organizations/${organizationId}/services/${serviceId}/pipesCdcScaling`;
  await waitFor(async () => (await send({ path, authorization })).status === 200, {
    what: "the API to know the service",
  });
  return async (cores) => {
    const body = JSON.stringify({ replicaCpuMillicores: cores * 1000 });
    const { status, headers } = await send({
      method: "PATCH",
      path,
      authorization,
      headers: { "Content-Type": "application/json" },
      body,
    });
    expect(status).toBe(200);
    return headers["x-request-id"] ?? "";
  };
}

it("records a rescale as one trace, from the request to the last pipe, with the request id as its id", async () => {
  const collector = await startFakeCollector();
  const send = await start(collector.url);
  const requestId = await send(4);
  await environment.waitForCondition("Ready", "True");
  const spans = await waitFor(() => collector.spans.length >= 5 && collector.spans, {
    what: "the spans to arrive",
  });

  const named = (name: string) => spans.filter((span) => span.name.startsWith(name));
  const [request] = named("PATCH");
  const [rescale] = named("rescale");
  const rollouts = named("roll out").toSorted((a, b) => a.startMs - b.startMs);
  expect(spans.every(({ traceId }) => traceId === requestId.replaceAll("-", ""))).toBe(true);
  expect(request).toMatchObject({ service: "pipe-scaling-api", status: { code: 0 } });
  expect(request?.parentSpanId).toBeUndefined();
  expect(request?.attributes).toMatchObject({
    "http.response.status_code": 200,
    "pipe_scaling.organization": environment.organizationId,
    "pipe_scaling.request_id": requestId,
  });
  expect(rescale).toMatchObject({ service: "pipe-scaling-controller", parentSpanId: request?.spanId });
  expect(rescale?.attributes).toMatchObject({
    "pipe_scaling.outcome": "completed",
    "pipe_scaling.service": environment.serviceId,
    "pipe_scaling.size": "4 cpu / 16 Gi",
  });
  expect(rollouts.map(({ parentSpanId }) => parentSpanId)).toEqual(pipes.map(() => rescale?.spanId));
  expect(rollouts.map(({ attributes }) => attributes["pipe_scaling.pipe"]).toSorted()).toEqual(pipes);
  const [canary, ...others] = rollouts;
  for (const other of others) expect(other.startMs).toBeGreaterThan(canary?.startMs ?? 0);
  expect(rescale?.startMs).toBeLessThanOrEqual(canary?.startMs ?? 0);
  expect(rescale?.endMs).toBeGreaterThanOrEqual(Math.max(...rollouts.map(({ endMs }) => endMs)));

  // A size that was not requested through the API is in no trace.
  await environment.requestSize(2);
  await environment.waitForCondition("Ready", "True");
  const nextId = await send(3);
  await waitFor(() => collector.spans.some((span) => span.traceId === nextId.replaceAll("-", "")), {
    what: "the next trace",
  });
  expect(new Set(collector.spans.map(({ traceId }) => traceId)).size).toBe(2);
});

it("rescales and ends without delay if the collector accepts connections and never responds", async () => {
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    silent.close();
  });
  const address = silent.address();
  const send = await start(`http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
  await send(4);
  await environment.waitForCondition("Ready", "True");
  for (const name of pipes) expect(resourcesOf(await environment.pipe(name))).toBe("4 16Gi 16Gi");
});
