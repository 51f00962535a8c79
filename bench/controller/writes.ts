import { on } from "node:events";
import { LAST_ROLLOUT_ANNOTATION, SERVICE_LABEL } from "../../src/controller/names.ts";
import { formatLastRollout } from "../../src/controller/observe/last-rollout.ts";
import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import { type HistoryEntry, MAX_HISTORY } from "../../src/crd/pipe-scaling.ts";
import { cpuQuantity, memoryQuantity } from "../../src/domain/quantity.ts";
import { describeSize, type Size, sizeOfCores } from "../../src/domain/size.ts";
import { KubeClient } from "../../src/kube/client.ts";
import { connect } from "../../src/kube/connection.ts";
import type { KubeObject, ObjectMeta } from "../../src/kube/objects.ts";
import { collectionPath, DEPLOYMENTS, objectPath, type Resource } from "../../src/kube/paths.ts";
import { inParallel } from "../in-parallel.ts";

/**
 * The baseline of a rescale, a separate process: a loop that makes the same kinds of writes as the controller, with the
 * same client and concurrency, but decides and watches nothing. It lists the objects once, reports that it is ready,
 * and rescales everything for each size that it receives.
 */
const [kubeconfig, namespace = ""] = process.argv.slice(2);

export interface Rescale {
  readonly cores: number;
}

/** Concurrency: the number of workers of the controller (src/controller/setup.ts). */
const CONCURRENCY = 16;
const LIST_TIMEOUT_MS = 60_000;

interface Service {
  scaling: ObjectMeta;
  history: HistoryEntry[];
  pipes: ObjectMeta[];
}

const client = new KubeClient(await connect(kubeconfig));
const services = await list();
// Ends regularly, so that Node writes the profile.
process.once("SIGTERM", () => process.exit());
say("ready");
for await (const [order] of on(process, "message")) {
  const { cores }: Rescale = order;
  await rescale(sizeOfCores(cores));
}

async function list(): Promise<Service[]> {
  const [scalings, pipes] = await Promise.all([all(PIPE_SCALINGS), all(DEPLOYMENTS)]);
  const ofService = Map.groupBy(pipes, ({ labels }) => labels?.[SERVICE_LABEL]);
  return scalings.map((scaling) => ({ scaling, history: [], pipes: ofService.get(scaling.name) ?? [] }));
}

async function all(resource: Resource): Promise<ObjectMeta[]> {
  const request = { path: collectionPath(resource, namespace), timeoutMs: LIST_TIMEOUT_MS };
  const { items } = await client.json<{ readonly items: readonly KubeObject[] }>(request);
  return items.map(({ metadata }) => metadata);
}

async function rescale(size: Size): Promise<void> {
  let left = services.length;
  await inParallel(CONCURRENCY, services, async (service) => {
    service.pipes = await Promise.all(service.pipes.map((pipe) => giveSize(pipe, service.scaling, size)));
    left -= 1;
    if (left === 0) say("sized");
    service.scaling = await report(service, size);
  });
  say("rescaled");
}

async function giveSize(pipe: ObjectMeta, scaling: ObjectMeta, size: Size): Promise<ObjectMeta> {
  const { name, uid, resourceVersion } = pipe;
  const amounts = { cpu: cpuQuantity(size), memory: memoryQuantity(size) };
  const resources = { requests: amounts, limits: { memory: amounts.memory } };
  const rollout = {
    size,
    isRollback: false,
    startedAtMs: Date.now(),
    cameUp: false,
    attempts: 1,
    serviceId: scaling.name,
    scalingUid: scaling.uid,
    scalingGeneration: scaling.generation ?? 0,
    generation: 1,
    revision: 1,
    progressedAtS: 0,
    replicas: 0,
  };
  const annotations = { [LAST_ROLLOUT_ANNOTATION]: formatLastRollout(rollout, uid) };
  const { metadata } = await client.json<KubeObject>({
    method: "PATCH",
    path: objectPath(DEPLOYMENTS, namespace, name),
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/strategic-merge-patch+json",
    body: {
      metadata: { uid, resourceVersion, annotations },
      spec: { template: { spec: { containers: [{ name: "pipe", resources }] } } },
    },
  });
  return metadata;
}

async function report(service: Service, size: Size): Promise<ObjectMeta> {
  const { name, uid, resourceVersion } = service.scaling;
  const now = `${new Date().toISOString().slice(0, 19)}Z`;
  const wanted = describeSize(size);
  const condition = (type: string, status: string) => ({
    type,
    status,
    observedGeneration: 1,
    lastTransitionTime: now,
    reason: "Progressing",
    message: `0 of 3 pipes run ${wanted}. In progress: pipe-${name}-1, pipe-${name}-2, pipe-${name}-3.`,
  });
  const desired = {
    replicaCpuMillicores: size.cpuMillicores,
    replicaMemoryGb: size.memoryGib,
    summary: wanted,
  };
  const entry = { ...desired, source: "Spec", result: "Progressing", startedAt: now } as const;
  service.history = [entry, ...service.history].slice(0, MAX_HISTORY);
  const status = {
    conditions: [condition("Ready", "False"), condition("Reconciling", "True")],
    desired,
    propagation: { requestId: null, startedAt: now },
    history: service.history,
  };
  const { metadata } = await client.json<KubeObject>({
    method: "PATCH",
    path: `${objectPath(PIPE_SCALINGS, namespace, name)}/status`,
    query: { fieldManager: CONTROLLER_FIELD_MANAGER },
    patchType: "application/merge-patch+json",
    body: { apiVersion: API_VERSION, kind: KIND, metadata: { uid, resourceVersion }, status },
  });
  return metadata;
}

function say(msg: string): void {
  console.log(JSON.stringify({ msg, time: new Date().toISOString() }));
}
