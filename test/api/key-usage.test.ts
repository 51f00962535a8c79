import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { describe, expect, it, onTestFinished } from "vitest";
import * as z from "zod";
import { ClusterCache } from "../../src/api/cluster/cluster-cache.ts";
import { KeyUsageWriter } from "../../src/api/cluster/key-usage/writer.ts";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { apiKey } from "../../src/api/resources/keys/schema.ts";
import { KubeClient, type KubeRequest } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import type { ConfigMap } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, objectPath } from "../../src/kube/paths.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { FakeClock } from "../support/fakes/fake-clock.ts";
import type { RunningApi } from "./environment.ts";
import { setUpEnvironment } from "./fixtures.ts";

const MINUTE = 60_000;

const envelope = successEnvelope(z.array(apiKey));

const environment = setUpEnvironment("key-usage");

function record(organizationId: string): Promise<ConfigMap> {
  const path = objectPath(CONFIG_MAPS, environment.records, `key-usage-${organizationId}`);
  return environment.admin.json<ConfigMap>({ path });
}

/** Returns the last use of a key, which this API reports to another key. */
async function usedAt(api: RunningApi, organizationId: string, id: string, reader: string) {
  const path = `/v1/organizations/${organizationId}/keys`;
  const { body } = await api.send({ path, authorization: reader });
  return envelope.parse(body).result.find((key) => key.id === id)?.usedAt;
}

describe("the last use of a key", () => {
  it("is stored when a process ends, and returned by all other processes and by the next one", async () => {
    const organizationId = await environment.addOrganization();
    const key = await environment.addKey({ organizationId });
    const reader = await environment.addKey({ organizationId });
    const other = await environment.startReadyApi();
    onTestFinished(() => other.stop());
    await other.waitForKey(reader.authorization);
    expect(await usedAt(other, organizationId, key.id, reader.authorization)).toBeUndefined();

    const first = await environment.startReadyApi();
    const before = Date.now();
    await first.waitForKey(key.authorization);
    await first.stop();
    const after = Date.now();

    const written = await record(organizationId);
    const time = written.data?.[key.id] ?? "";
    expect(Date.parse(time) % MINUTE).toBe(0);
    expect(Date.parse(time)).toBeGreaterThan(before - MINUTE);
    expect(Date.parse(time)).toBeLessThanOrEqual(after);
    const isReturned = async () =>
      (await usedAt(other, organizationId, key.id, reader.authorization)) === time;
    await waitFor(isReturned, { what: "the other process to return the use" });
    const successor = await environment.startReadyApi();
    onTestFinished(() => successor.stop());
    expect(await usedAt(successor, organizationId, key.id, reader.authorization)).toBe(time);
  });

  it("is written at most once a minute, regardless of the number of processes", async () => {
    const organizationId = await environment.addOrganization();
    const { id } = await environment.addKey({ organizationId });
    const processes = [await startWriter(), await startWriter()];

    for (let round = 0; round < 5; round += 1) {
      const used = processes.map(({ caches, clock }) => {
        caches.keyUsageBuffer.note({ organizationId, id }, clock.now());
        return Math.floor(clock.now() / MINUTE) * MINUTE;
      });
      const pass = (ms: number) => Promise.all(processes.map(({ clock }) => clock.advance(ms)));
      await pass(MINUTE);
      const isWritten = async () => {
        // A round that waits for the cluster delays the next one.
        await pass(MINUTE / 60);
        return (await record(organizationId)).data?.[id] === new Date(Math.max(...used)).toISOString();
      };
      await waitFor(isWritten, { what: "the use to be written" });
    }
    for (const { stop } of processes) await stop();

    expect(processes.flatMap(({ writes }) => writes)).toHaveLength(5);
  });
});

/** The key-usage writer of a process, with the permissions of the API, and its completed writes. */
async function startWriter() {
  const client = new KubeClient(await connect(environment.kubeconfig));
  const writes: KubeRequest[] = [];
  const counting = {
    async json<T>(request: KubeRequest): Promise<T> {
      const response = await client.json<T>(request);
      if (request.method !== undefined) writes.push(request);
      return response;
    },
    stream: (request: KubeRequest & { readonly signal: AbortSignal }) => client.stream(request),
  };
  const clock = new FakeClock();
  const log = createLogger("silent", "api");
  const common = { client: counting, namespace: environment.records, clock, log };
  const caches = new ClusterCache({ ...common, pipeNamespaces: [], maxAgeMs: 5 * 60_000 });
  const ending = new AbortController();
  const running = Promise.all([
    caches.run(ending.signal),
    new KeyUsageWriter({ cache: caches, ...common }).run(ending.signal),
  ]);
  const stop = async () => {
    ending.abort();
    await running;
    await client.close();
  };
  onTestFinished(stop);
  await waitFor(() => caches.notSynced().length === 0, { what: "the caches to be filled" });
  return { caches, clock, writes, stop };
}
