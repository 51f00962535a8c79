import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { RESIZE_OUTCOME_ANNOTATION } from "@pipe-scaling/local-cluster/resize-stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import type { KubeObject, Node } from "../../src/kube/objects.ts";
import { collectionPath, NODES, objectPath, PODS } from "../../src/kube/paths.ts";
import type { Pod, PodSpec } from "../../src/kube/pods.ts";
import type { ControllerSettings } from "../../src/settings/controller.ts";
import { conditionOf, TestEnvironment } from "../support/test-environment.ts";
import { Invariants } from "./faults/invariants.ts";

interface PlacedPod extends Pod {
  readonly spec: Pod["spec"] & PodSpec;
}

/** A deferred resize knows already that its own node has no room. */
const NO_ROOM =
  /(none of the 2 nodes that are large enough has|the one other node that is large enough has no) room for it at present/;

/** Much shorter than in production. */
const TIMEOUTS = { deferredMs: 500, roomRetry: { firstMs: 500, mostMs: 500 } };

describe("with nodes that are large enough but full, a pipe that stops its old pods first", () => {
  let cluster: Cluster;
  let environment: TestEnvironment;
  let invariants: Invariants;
  let nodes: readonly string[];

  beforeAll(async () => {
    // A cluster of its own, because every pod on its nodes counts.
    cluster = await startCluster({ nodes: 2, nodeSize: { cpus: 12 } });
  });
  afterAll(() => cluster?.stop());

  beforeEach(async () => {
    environment = await TestEnvironment.create("basic", cluster);
    invariants = await Invariants.observe(environment);
    invariants.accept(1);
    const path = collectionPath(NODES, undefined);
    const { items } = await environment.client.json<{ readonly items: readonly Node[] }>({ path });
    nodes = items.map(({ metadata }) => metadata.name);
    expect(nodes).toHaveLength(2);
  });
  afterEach(async () => {
    await environment.deleteAll({ apiVersion: "apps/v1", plural: "deployments" });
    await environment.deleteAll(PODS);
    await environment.end();
    await invariants.close();
  });

  async function start(settings: Partial<ControllerSettings>, names = ["pipe-a"]): Promise<void> {
    await environment.startController(settings, { timeouts: TIMEOUTS });
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    const podAnnotations = { [RESIZE_OUTCOME_ANNOTATION]: "Deferred" };
    for (const name of names)
      await environment.createPipe({ name, cores: 1, strategy: "Recreate", podLabels, podAnnotations });
    await invariants.settled(1, { quietMs: 0 });
  }

  async function pods(): Promise<readonly PlacedPod[]> {
    const path = collectionPath(PODS, environment.pipes);
    const query = { labelSelector: TYPE_LABEL };
    return (await environment.client.json<{ readonly items: readonly PlacedPod[] }>({ path, query })).items;
  }

  const uids = async () => (await pods()).map(({ metadata }) => metadata.uid).toSorted();

  async function nodeOf(pipe: string): Promise<string> {
    const own = (await pods()).find(({ metadata }) => metadata.name.startsWith(`${pipe}-`));
    return own?.spec.nodeName ?? "";
  }

  const otherThan = (node: string) => nodes.find((each) => each !== node) ?? "";

  /** Takes so many of the 12 cores of a node from pipes. */
  async function fill(node: string, cpu = 9, name = `fills-${node}`): Promise<void> {
    const containers = [{ name: "other", image: "other", resources: { requests: { cpu, memory: "1Gi" } } }];
    const spec = { nodeName: node, terminationGracePeriodSeconds: 0, containers };
    await environment.create(PODS, environment.pipes, { metadata: { name }, spec });
  }

  async function empty(node: string, name = `fills-${node}`): Promise<void> {
    const path = objectPath(PODS, environment.pipes, name);
    await environment.client.json<KubeObject>({ method: "DELETE", path });
  }

  /** Requests four cores, and waits until the status says that there is no room. */
  async function expectNoRoom(): Promise<void> {
    invariants.accept(4);
    await environment.requestSize(4);
    await waitFor(async () => NO_ROOM.test(await told()), { what: "the message about the missing room" });
  }

  async function told(): Promise<string> {
    return conditionOf(await environment.scaling(), "Ready")?.message ?? "";
  }

  it("keeps its pod while its resize is deferred, and is resized in place as soon as its node has room", async () => {
    await start({ resizeStrategy: "InPlaceOrRollout" });
    for (const node of nodes) await fill(node);
    const before = await uids();
    await expectNoRoom();
    expect(await told()).toMatch(/pipe-a: pod pipe-a-\S+ waits for room on its node/);
    await invariants.quiet(1200);
    expect(await uids()).toEqual(before);
    const [pod] = await pods();
    await empty(await nodeOf("pipe-a"));
    // The simulated kubelet does not know the room of its node.
    await environment.client.json({
      method: "PATCH",
      path: objectPath(PODS, environment.pipes, pod?.metadata.name ?? ""),
      patchType: "application/merge-patch+json",
      body: { metadata: { annotations: { [RESIZE_OUTCOME_ANNOTATION]: null } } },
    });
    await invariants.settled(4, { quietMs: 0 });
    expect(await uids()).toEqual(before);
    await invariants.end();
  });

  it("is rolled out as soon as another node has room, and its new pod is never unschedulable", async () => {
    await start({ resizeStrategy: "InPlaceOrRollout" });
    for (const node of nodes) await fill(node);
    const before = await uids();
    const node = await nodeOf("pipe-a");
    await expectNoRoom();
    expect(await uids()).toEqual(before);
    await empty(otherThan(node));
    await invariants.settled(4, { quietMs: 0 });
    expect(await nodeOf("pipe-a")).toBe(otherThan(node));
    const { status } = await environment.scaling();
    expect(status?.pipes?.fallbacks).toMatchObject([{ pipe: "pipe-a", reason: "Deferred" }]);
    await invariants.end();
  });

  it("is not touched with the strategy Rollout until a node has room, the room of its old pod included", async () => {
    await start({ resizeStrategy: "Rollout" });
    for (const node of nodes) await fill(node);
    const before = await uids();
    await expectNoRoom();
    const isSearchedAgain = async () =>
      ((await environment.scaling()).status?.failures?.[0]?.attempts ?? 0) > 2;
    await waitFor(isSearchedAgain, { what: "the third search" });
    const { status } = await environment.waitForCondition("Stalled", "True", "NoNodeHasRoom");
    expect(status?.failures).toMatchObject([{ pipe: "pipe-a", nextRetryAt: expect.any(String) }]);
    expect(await uids()).toEqual(before);
    await empty(await nodeOf("pipe-a"));
    await invariants.settled(4, { quietMs: 0 });
    await invariants.end();
  });

  it("keeps its pod if another pipe of its service takes the only room", async () => {
    const names = ["pipe-a", "pipe-b"];
    await start({ resizeStrategy: "Rollout" }, names);
    const own = await nodeOf("pipe-a");
    const other = otherThan(own);
    await fill(own);
    // Two pods, because a node that is empty for a moment would have room for both pipes.
    await fill(other, 7);
    await fill(other, 2, "takes-the-room");
    await expectNoRoom();
    const before = await uids();
    await empty(other, "takes-the-room");
    await waitFor(async () => (await environment.scaling()).status?.pipes?.updated === 1, {
      what: "one pipe",
    });
    await environment.waitForCondition("Stalled", "True", "NoNodeHasRoom");
    const kept = (await uids()).filter((uid) => before.includes(uid));
    expect(kept).toHaveLength(1);
    for (const each of nodes) await empty(each);
    await invariants.settled(4, { quietMs: 0 });
    await invariants.end();
  });
});
