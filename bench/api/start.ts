import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { RECORDS_NAMESPACE } from "../../deploy/chart/install.ts";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import { sizeOfCores } from "../../src/domain/size.ts";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import { CONFIG_MAPS, collectionPath, type Resource, SECRETS } from "../../src/kube/paths.ts";
import { API_KEY_SECRET_TYPE, RESOURCE_LABEL } from "../../src/records/labels.ts";
import { startChild, waitForOutput } from "../child.ts";
import { inParallel } from "../in-parallel.ts";
import type { Listing } from "../lists.ts";
import { apiKey, organizationRecord, serviceRecord } from "../objects.ts";
import type { Pair } from "../statistics.ts";
import { DEFAULT_LIMITS, startApi } from "./server.ts";
import { type ApiWorld, PIPES } from "./world.ts";

const CONCURRENCY = 32;
const RECORDS_PER_ORGANIZATION = 100;

/** The API has no work after its start; its RSS is read when it has been idle for this long. */
const SETTLE_MS = 3000;

/** Collections that the API lists (src/api/cluster/cluster-cache.ts). */
const LISTS: readonly Listing[] = [
  {
    path: collectionPath(SECRETS, RECORDS_NAMESPACE),
    fieldSelector: `type=${API_KEY_SECRET_TYPE}`,
    labelSelector: `${RESOURCE_LABEL}=api-key`,
  },
  {
    path: collectionPath(CONFIG_MAPS, RECORDS_NAMESPACE),
    labelSelector: `${RESOURCE_LABEL} in (organization,service,members,backup,key-usage)`,
  },
  { path: collectionPath(PIPE_SCALINGS, PIPES) },
];

export interface ApiStarts {
  /** Milliseconds from spawn until ready, or until all is listed. */
  readonly ms: readonly Pair[];
  readonly rssBytes: readonly number[];
}

/** Creates this number of keys, and of services with a PipeScaling. */
export async function seedRecords({ cluster }: ApiWorld, count: number): Promise<void> {
  const admin = new KubeClient(await connect(cluster.kubeconfig));
  const add = (of: Resource, namespace: string, body: object) =>
    admin.json({ method: "POST", path: collectionPath(of, namespace), body });
  const spec = {
    replicaCpuMillicores: sizeOfCores(1).cpuMillicores,
    replicaMemoryGb: sizeOfCores(1).memoryGib,
  };
  let organizationId = "";
  try {
    for (let made = 0; made < count; made += RECORDS_PER_ORGANIZATION) {
      organizationId = randomUUID();
      await add(CONFIG_MAPS, RECORDS_NAMESPACE, organizationRecord(organizationId, "scale"));
      await inParallel(
        CONCURRENCY,
        Array.from({ length: RECORDS_PER_ORGANIZATION }, randomUUID),
        async (name) => {
          await add(SECRETS, RECORDS_NAMESPACE, apiKey(organizationId).record);
          await add(CONFIG_MAPS, RECORDS_NAMESPACE, serviceRecord(name, organizationId, PIPES));
          await add(PIPE_SCALINGS, PIPES, { apiVersion: API_VERSION, kind: KIND, metadata: { name }, spec });
        },
      );
    }
  } finally {
    await admin.close();
  }
}

/** Starts the API and a process that only makes the same lists, in turns. The first round is a warm-up. */
export async function measureApiStart(
  world: ApiWorld,
  programs: { readonly api: string; readonly lists: string },
  rounds: number,
): Promise<ApiStarts> {
  const measured: {
    readonly ours: { readonly ms: number; readonly rssBytes: number };
    readonly baseline: number;
  }[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    // The order alternates, so that a drift over time favors neither.
    const before = round % 2 === 0 ? undefined : await listAll(world, programs.lists);
    const ours = await start(world, programs.api);
    const baseline = before ?? (await listAll(world, programs.lists));
    if (round > 0) measured.push({ ours, baseline });
  }
  return {
    ms: measured.map(({ ours, baseline }) => ({ ours: ours.ms, baseline })),
    rssBytes: measured.map(({ ours }) => ours.rssBytes),
  };
}

async function start(world: ApiWorld, program: string) {
  const startedAt = performance.now();
  const api = await startApi(world, program, DEFAULT_LIMITS);
  const ms = performance.now() - startedAt;
  await delay(SETTLE_MS);
  const rssBytes = await api.rssBytes();
  await api.stop();
  return { ms, rssBytes };
}

async function listAll({ cluster, kubeconfig }: ApiWorld, file: string): Promise<number> {
  const startedAt = performance.now();
  const args = [kubeconfig, JSON.stringify(LISTS)];
  const lists = startChild(cluster, { name: "lists", file, args });
  lists.stderr?.resume();
  const closed = once(lists, "close");
  await waitForOutput(lists.stdout, (text) => text.includes('"listed"') || undefined);
  const ms = performance.now() - startedAt;
  await closed;
  return ms;
}
