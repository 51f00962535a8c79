import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
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
import { createWorld, type RunningApi, type World } from "./world.ts";

const MINUTE = 60_000;

const envelope = successEnvelope(z.array(apiKey));

let world: World;

beforeAll(async () => {
  world = await createWorld("key-usage");
});

afterAll(async () => {
  await world?.remove();
});

function record(organizationId: string): Promise<ConfigMap> {
  const path = objectPath(CONFIG_MAPS, world.records, `key-usage-${organizationId}`);
  return world.admin.json<ConfigMap>({ path });
}

/** When a key was last used, as that API answers it to another key. */
async function usedAt(api: RunningApi, organizationId: string, id: string, reader: string) {
  const path = `/v1/organizations/${organizationId}/keys`;
  const { body } = await api.ask({ path, authorization: reader });
  return envelope.parse(body).result.find((key) => key.id === id)?.usedAt;
}

describe("the use of a key", () => {
  it("is written down by a process that ends, and told by every other, and by its successor", async () => {
    const organizationId = await world.addOrganization();
    const key = await world.addKey({ organizationId });
    const reader = await world.addKey({ organizationId });
    const other = await world.startReadyApi();
    onTestFinished(() => other.stop());
    await other.admits(reader.authorization);
    expect(await usedAt(other, organizationId, key.id, reader.authorization)).toBeUndefined();

    const first = await world.startReadyApi();
    const before = Date.now();
    await first.admits(key.authorization);
    await first.stop();
    const after = Date.now();

    const written = await record(organizationId);
    const time = written.data?.[key.id] ?? "";
    expect(Date.parse(time) % MINUTE).toBe(0);
    expect(Date.parse(time)).toBeGreaterThan(before - MINUTE);
    expect(Date.parse(time)).toBeLessThanOrEqual(after);
    const isTold = async () => (await usedAt(other, organizationId, key.id, reader.authorization)) === time;
    await waitFor(isTold, { what: "the other process to tell the use" });
    const successor = await world.startReadyApi();
    onTestFinished(() => successor.stop());
    expect(await usedAt(successor, organizationId, key.id, reader.authorization)).toBe(time);
  });

  it("is written at most once a minute, however many processes see it", async () => {
    const organizationId = await world.addOrganization();
    const { id } = await world.addKey({ organizationId });
    const processes = [await startWriter(), await startWriter()];

    for (let round = 0; round < 5; round += 1) {
      const used = processes.map(({ caches, clock }) => {
        caches.keyUsageBuffer.note({ organizationId, id }, clock.now());
        return Math.floor(clock.now() / MINUTE) * MINUTE;
      });
      const pass = (ms: number) => Promise.all(processes.map(({ clock }) => clock.advance(ms)));
      await pass(MINUTE);
      const isWritten = async () => {
        // A round that waited for the cluster all that time has its next one later.
        await pass(MINUTE / 60);
        return (await record(organizationId)).data?.[id] === new Date(Math.max(...used)).toISOString();
      };
      await waitFor(isWritten, { what: "the use to be written" });
    }
    for (const { stop } of processes) await stop();

    expect(processes.flatMap(({ writes }) => writes)).toHaveLength(5);
  });
});

/** What of a process writes down the use of keys, with the rights of the API, and its writes that were made. */
async function startWriter() {
  const client = new KubeClient(await connect(world.kubeconfig));
  const writes: KubeRequest[] = [];
  const counting = {
    async json<T>(request: KubeRequest): Promise<T> {
      const answer = await client.json<T>(request);
      if (request.method !== undefined) writes.push(request);
      return answer;
    },
    stream: (request: KubeRequest & { readonly signal: AbortSignal }) => client.stream(request),
  };
  const clock = new FakeClock();
  const log = createLogger("silent", "api");
  const common = { client: counting, namespace: world.records, clock, log };
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
