import { startCluster } from "@pipe-scaling/local-cluster";
import { MEMORY_USAGE_ANNOTATION, startKubelet } from "@pipe-scaling/local-cluster/kubelet";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect, it, onTestFinished } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import type { Timeouts } from "../../src/controller/timeouts.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { collectionPath, objectPath, PODS, REPLICA_SETS } from "../../src/kube/paths.ts";
import type { Pod } from "../../src/kube/pods.ts";
import type { ReplicaSet } from "../../src/kube/workloads.ts";
import { BothKinds, CANARIES } from "../integration/both-kinds.ts";
import { restrictController } from "../integration/in-place-account.ts";
import type { PipeOptions } from "../support/fixtures/pipe.ts";
import { conditionOf, resourcesOf, TestEnvironment } from "../support/test-environment.ts";

/** The kubelet reports an error 15 s after the resize, and the controller gives up after two minutes. */
const FALLBACK_MS = 170_000;

/** A service on a node with a real kubelet, and a controller, which resizes in place unless told otherwise. */
async function start(
  cpus: number,
  timeouts: Partial<Timeouts> = {},
  resizeStrategy: "InPlaceOrRollout" | "Rollout" = "InPlaceOrRollout",
): Promise<TestEnvironment> {
  const cluster = await startCluster({ nodes: 0 });
  onTestFinished(() => cluster.stop());
  await startKubelet(cluster, { nodeSize: { cpus, memoryGib: cpus * 5 } });
  const environment = await TestEnvironment.create("basic", cluster);
  onTestFinished(() => environment.end());
  await restrictController(environment);
  await environment.startController({ resizeStrategy }, { timeouts });
  return environment;
}

/** Creates a pipe, and resolves when all pipes have their size according to the status. */
async function createPipes(
  environment: TestEnvironment,
  names: readonly string[],
  options: Partial<PipeOptions>,
): Promise<void> {
  const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  // The container runtime only accepts images without a tag.
  for (const name of names) await environment.createPipe({ podLabels, image: "pipe", ...options, name });
  const summary = `${names.length}/${names.length}`;
  const isReady = async () => (await environment.scaling()).status?.pipes?.summary === summary;
  await waitFor(isReady, { what: `${summary} pipes to run` });
  const { replicas = 1 } = options;
  const isRunning = ({ status }: Pod) => status?.containerStatuses?.[0]?.state?.running !== undefined;
  const areRunning = async () => {
    const all = await pods(environment);
    if (all.length === names.length * replicas && all.every(isRunning)) return true;
    throw new Error(JSON.stringify(all.map(({ status }) => status?.containerStatuses?.[0]?.state)));
  };
  await waitFor(areRunning, { what: "the pods to run" });
}

async function list<T>(
  { client, pipes }: TestEnvironment,
  resource: Parameters<typeof collectionPath>[0],
): Promise<readonly T[]> {
  return (await client.json<{ readonly items: readonly T[] }>({ path: collectionPath(resource, pipes) }))
    .items;
}

function pods(environment: TestEnvironment): Promise<readonly Pod[]> {
  return list(environment, PODS);
}

/** Sorted IDs and restart counts of the containers, which a restart or a replacement of a pod changes. */
async function containers(environment: TestEnvironment): Promise<readonly string[]> {
  return (await pods(environment))
    .map(({ metadata, status }) => {
      const { containerID, restartCount } = status?.containerStatuses?.[0] ?? {};
      return `${metadata.uid} ${containerID} ${restartCount}`;
    })
    .sort();
}

it("a service with a Deployment and a StatefulSet is rescaled without a restart, and its owner's partition stays", async () => {
  const environment = await start(64, { smallerMemoryMs: 1000 });
  const pipes = new BothKinds(environment, "cdc", 2);
  await pipes.create({ image: "pipe" });
  const before = await pipes.containers();
  for (const cores of [4, 1]) {
    await pipes.rescale(cores, "InPlace");
    for (const { status } of await pods(environment))
      expect(status?.containerStatuses?.[0]?.resources?.requests?.["cpu"]).toBe(`${cores}`);
    expect(await pipes.containers()).toEqual(before);
  }
});

it.each(CANARIES)(
  "a service with a Deployment and a StatefulSet is rolled out, and the $canary as its canary first",
  async ({ deployment }) => {
    const environment = await start(64, {}, "Rollout");
    const pipes = new BothKinds(environment, deployment);
    await pipes.create({ image: "pipe" });
    for (const cores of [4, 1]) {
      await pipes.rescale(cores, "Rollout");
      await pipes.expectCanaryFirst();
    }
  },
);

it("a service of ten pipes with two pods each is rescaled without a restart", async () => {
  const environment = await start(64);
  const names = Array.from({ length: 10 }, (_, index) => `pipe-${index}`);
  await createPipes(environment, names, { cores: 1, replicas: 2 });
  const before = await containers(environment);
  expect(before.every((each) => each.endsWith(" 0"))).toBe(true);
  for (const cores of [2, 1]) {
    await environment.requestSize(cores);
    await environment.waitForCondition("Ready", "True");
    const size = { cpu: `${cores}`, memory: `${cores * 4}Gi` };
    for (const { status } of await pods(environment)) {
      expect(status?.containerStatuses).toMatchObject([
        { resources: { requests: size }, allocatedResources: size },
      ]);
    }
    for (const name of names) {
      const pipe = await environment.pipe(name);
      expect(resourcesOf(pipe)).toBe(`${size.cpu} ${size.memory} ${size.memory}`);
      expect(pipe.spec.paused).toBeUndefined();
    }
    expect(await containers(environment)).toEqual(before);
    expect(await list<ReplicaSet>(environment, REPLICA_SETS)).toHaveLength(names.length);
  }
});

it.each([
  ["RollingUpdate", {}],
  // Much shorter than in production, so that nodes are searched for room.
  ["Recreate", { deferredMs: 100, roomRetry: { firstMs: 500, mostMs: 500 } }],
] as const)(
  "a pod that does not fit on its node is resized when another pod is deleted, with the strategy %s",
  async (strategy, timeouts) => {
    const environment = await start(4, timeouts);
    await createPipes(environment, ["pipe"], { cores: 1, strategy });
    const before = await containers(environment);
    const name = "other";
    const resources = { requests: { cpu: "2" } };
    await environment.create(PODS, "default", {
      metadata: { name },
      spec: { containers: [{ name, image: name, resources }], terminationGracePeriodSeconds: 0 },
    });
    const path = objectPath(PODS, "default", name);
    const isRunning = async () =>
      (await environment.client.json<KubeObject & Pod>({ path })).status?.containerStatuses?.[0]?.state
        ?.running;
    await waitFor(isRunning, { what: "the other pod to run" });
    await environment.requestSize(3);
    const isDeferred = async () =>
      (await pods(environment)).some(({ status }) =>
        status?.conditions?.some(({ type, reason }) => type === "PodResizePending" && reason === "Deferred"),
      );
    await waitFor(isDeferred, { what: "the resize to be deferred" });
    if (strategy === "Recreate") {
      const told = async () => conditionOf(await environment.scaling(), "Ready")?.message ?? "";
      const isTold = async () => (await told()).includes("and no other node is large enough");
      await waitFor(isTold, { what: "the result of the search for room" });
    }
    await environment.client.json({ method: "DELETE", path });
    await environment.waitForCondition("Ready", "True");
    expect(await containers(environment)).toEqual(before);
    expect(resourcesOf(await environment.pipe("pipe"))).toBe("3 12Gi 12Gi");
  },
);

it(
  "a pod that uses more memory than the new size keeps running until the rollout replaces it",
  async () => {
    // The node has no room for a second pod, so the old one stays.
    const environment = await start(2);
    await createPipes(environment, ["pipe"], { cores: 1 });
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");
    const [before] = await containers(environment);
    for (const { metadata } of await pods(environment)) {
      await environment.client.json({
        method: "PATCH",
        path: objectPath(PODS, environment.pipes, metadata.name),
        patchType: "application/merge-patch+json",
        body: { metadata: { annotations: { [MEMORY_USAGE_ANNOTATION]: "6Gi" } } },
      });
    }
    await environment.requestSize(1);
    const isRolledOut = async () => (await list<ReplicaSet>(environment, REPLICA_SETS)).length === 2;
    await waitFor(isRolledOut, { what: "the rollout to begin", timeoutMs: FALLBACK_MS });
    const hasOldSize = async () => {
      const old = (await pods(environment)).find(({ metadata }) => before?.startsWith(metadata.uid));
      const isResized = old?.status?.conditions?.some(({ type }) => type.startsWith("PodResize"));
      const status = old?.status?.containerStatuses?.[0];
      return (
        !isResized && status?.resources?.limits?.["memory"] === "8Gi" && status.state?.running !== undefined
      );
    };
    await waitFor(hasOldSize, { what: "the old pod to run with its old size" });
    expect(await containers(environment)).toContain(before);
    // The fallback is counted with the status that reports it, which follows the write.
    const counted = 'pipe_scaling_in_place_fallbacks_total{reason="ResizeError"} 1';
    await waitFor(async () => (await environment.scrape()).includes(counted), {
      what: "the fallback to be counted",
    });
  },
  FALLBACK_MS + 120_000,
);
