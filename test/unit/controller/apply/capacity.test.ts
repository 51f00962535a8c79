import { describe, expect, it } from "vitest";
import { type NodeView, toNodeView } from "../../../../src/capacity/node-view.ts";
import type { RoomRequest, RoomResult } from "../../../../src/capacity/rooms.ts";
import { checkRoom, dryRun } from "../../../../src/controller/apply/checks.ts";
import type { PipeView } from "../../../../src/controller/observe/pipe-view.ts";
import type { PodView } from "../../../../src/controller/observe/pod-view.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";
import { aCommitter, aDeployment } from "../../../support/fixtures/committing.ts";
import { aNode } from "../../../support/fixtures/node.ts";
import { aPod } from "../../../support/fixtures/pod.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";
import { aStatefulPipe } from "../../../support/fixtures/stateful-set.ts";

const POD = aPod("a-1");
const NODE = toNodeView(aNode("node", { cpu: "16", memory: "64Gi" }));
const error = (code: number, message: string) => new KubeApiError("GET", code, JSON.stringify({ message }));

interface Cluster {
  /** The response to the dry run of the resize of the pod. */
  readonly ofPod?: () => unknown;
  /** The response to the dry run of the resize of the Deployment. */
  readonly ofPipe?: () => unknown;
  readonly changes?: Partial<PipeView>;
  readonly nodes?: () => readonly NodeView[] | undefined;
  readonly room?: () => RoomResult;
}

/** The applier of a pipe whose Deployment accepts every write by default. */
function setup({
  ofPod = () => ({}),
  ofPipe = () => aDeployment({ cores: 4 }),
  changes = {},
  nodes = () => [NODE],
  room = () => ({ type: "room" }),
}: Cluster) {
  const pipe = { ...toPipeView(aDeployment()), ...changes };
  const write = ({ path }: KubeRequest) => (path.endsWith("/resize") ? ofPod() : ofPipe());
  const made = aCommitter({ deployment: aDeployment(), write });
  made.caches.pipes.of(pipe.kind).apply(pipe);
  const asked: RoomRequest[] = [];
  const applier = {
    ...made.applier,
    nodes: { list: async () => nodes() },
    rooms: {
      find: async (request: RoomRequest) => {
        asked.push(request);
        return room();
      },
    },
  };
  const action = { pipe, container: "pipe", rollout: aRollout(sizeOfCores(4)), subject: "subject" };
  return { ...made, applier, action, asked };
}

async function tried(cluster: Cluster) {
  const { applier, action, writes } = setup(cluster);
  const checks = { isCommit: false, checksNodes: true, triedPod: POD } as const;
  await dryRun(applier, { type: "dry-run", ...action, ...checks });
  return { outcome: applier.writes.get("uid-a", "dry-run")?.outcome, writes: writes() };
}

async function searched(cluster: Cluster, fullNodes: readonly string[] = []) {
  const { applier, action, asked } = setup(cluster);
  await checkRoom(applier, { type: "check-room", ...action, stopping: [POD], fullNodes, lastsMs: 900_000 });
  return { outcome: applier.writes.get("uid-a", "check-room")?.outcome, asked };
}

function throwing(each: Error): () => never {
  return () => {
    throw each;
  };
}

describe("before a rollout that stops old pods first, the size", () => {
  it("is tried on a pod in any of its versions, without an effect", async () => {
    const { outcome, writes } = await tried({});
    expect(outcome?.type).toBe("done");
    expect(writes.every(({ query }) => query?.["dryRun"] === "All")).toBe(true);
    const [{ body } = { body: undefined }] = writes.filter(({ path }) => path.endsWith("/pods/a-1/resize"));
    expect(body).toEqual({
      metadata: { uid: "uid-a-1" },
      spec: {
        containers: [
          {
            name: "pipe",
            resources: { requests: { cpu: "4000m", memory: "16Gi" }, limits: { memory: "16Gi" } },
          },
        ],
      },
    });
  });

  it.each([
    [403, 'pods "a-1" is forbidden: exceeded quota: small'],
    [403, 'pods "a-1" is forbidden: failed quota: small: must specify limits.cpu'],
    [403, 'pods "a-1" is forbidden: maximum memory usage per Container is 8Gi, but limit is 16Gi'],
    [422, 'Pod "a-1" is invalid: requests: Invalid value: "4": must be less than or equal to cpu limit of 2'],
  ])("is refused if the pod gets %i %s", async (code, message) => {
    const { outcome } = await tried({ ofPod: throwing(error(code, message)) });
    expect(outcome).toMatchObject({
      error: { reason: "Refused", message: expect.stringContaining(`${message}; `) },
    });
  });

  it.each([
    error(422, "Pod QOS Class may not change as a result of resizing"),
    error(403, 'pods "a-1" is forbidden: User "controller" cannot patch resource "pods/resize"'),
    error(403, 'admission webhook "w" denied the request: exceeded quota: of its own'),
    error(404, 'pods "a-1" not found'),
    error(409, "the object has been modified"),
    error(500, "failed calling webhook"),
    new KubeUnreachableError("timeout"),
  ])("is accepted if the resize of the pod fails for another reason: %s", async (each) => {
    expect((await tried({ ofPod: throwing(each) })).outcome?.type).toBe("done");
  });

  it("is tried again soon if nodes cannot be listed", async () => {
    const { outcome } = await tried({ nodes: throwing(error(500, "etcd")) });
    expect(outcome).toMatchObject({
      error: { reason: "WriteFailed", message: "the nodes cannot be listed: etcd" },
    });
  });
});

describe("the search for room", () => {
  const none = () => ({ type: "none", message: "full" }) as const;

  const updateStrategy = { type: "RollingUpdate", rollingUpdate: { partition: 1 } } as const;
  const { inTurn } = aStatefulPipe({ options: { updateStrategy } });

  it.each<[string, Partial<PipeView>, number, boolean]>([
    ["all new pods of the pipe", {}, 3, false],
    ["the new pods above the partition of its owner", { inTurn }, 2, true],
  ])("asks for %s, in place of the old ones", async (_, changes, pods, isInTurn) => {
    const { outcome, asked } = await searched({ changes: { replicas: 3, ...changes } }, ["full"]);
    expect(outcome?.type).toBe("done");
    expect(asked).toMatchObject([
      {
        uid: "uid-a",
        pods,
        stopping: [{ uid: "uid-a-1", node: "node" }],
        isInTurn,
        fullNodes: ["full"],
        attempt: 0,
      },
    ]);
  });

  describe("shows later, for the room that it found,", () => {
    const RUNNING = { isComplete: false } as PipeView["rollout"];

    /** The progress that a later search sees. */
    async function progressOf(later: Partial<PipeView> | undefined, pods: readonly PodView[] = []) {
      const { applier, action, asked, caches } = setup({ changes: { inTurn } });
      await checkRoom(applier, { type: "check-room", ...action, stopping: [POD], fullNodes: [], lastsMs: 9 });
      const pipe = { ...action.pipe, ...later };
      caches.pipes.of(pipe.kind).apply({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: "9" } });
      if (!later) caches.pipes.of("Deployment").remove(pipe);
      for (const pod of pods) caches.pods.apply(pod);
      const [request] = asked;
      return { lastsMs: request?.lastsMs, ...request?.rollout() };
    }

    it("whether the rollout is in progress", async () => {
      const failed = aRollout(sizeOfCores(1), { isRollback: true });
      expect(await progressOf({ rollout: RUNNING })).toEqual({
        lastsMs: 9,
        isInProgress: true,
        placedOn: [],
      });
      expect(await progressOf({})).toMatchObject({ isInProgress: false });
      expect(await progressOf({ rollout: RUNNING, lastRollout: failed })).toMatchObject({
        isInProgress: false,
      });
      expect(await progressOf(undefined)).toMatchObject({ isInProgress: false });
    });

    it("the nodes of its new pods", async () => {
      const pods = [
        POD,
        aPod("a-0", { nodeName: "kept" }),
        aPod("a-2", { nodeName: "other" }),
        aPod("a-3", { nodeName: "" }),
        aPod("a-4", { nodeName: "evicted", isActive: false }),
      ];
      expect(await progressOf({ rollout: RUNNING }, pods)).toMatchObject({ placedOn: ["other"] });
    });
  });

  it("goes on with other nodes only after one that looked at its nodes", async () => {
    const results = [none, throwing(error(500, "etcd")), none, throwing(error(500, "etcd")), none];
    const { applier, action, asked } = setup({ room: () => (results.shift() ?? none)() });
    const search = { type: "check-room", ...action, stopping: [POD], fullNodes: [], lastsMs: 0 } as const;
    while (results.length > 0) await checkRoom(applier, search);
    expect(asked.map(({ attempt }) => attempt)).toEqual([0, 1, 1, 2, 2]);
  });

  it("fails if no node has room or is large enough, if the size is refused, or if pods cannot be listed", async () => {
    expect((await searched({ room: none })).outcome).toMatchObject({ error: { reason: "NoNodeHasRoom" } });
    const small = toNodeView(aNode("small", { cpu: "2", memory: "8Gi" }));
    expect((await searched({ nodes: () => [small] })).outcome).toMatchObject({
      error: { reason: "NoNodeLargeEnough" },
    });
    expect((await searched({ room: throwing(error(500, "etcd")) })).outcome).toMatchObject({
      error: { reason: "WriteFailed", message: "the pods cannot be listed: etcd" },
    });
    for (const fullNodes of [[], ["full"]])
      expect((await searched({ ofPipe: throwing(error(422, "no")) }, fullNodes)).outcome).toMatchObject({
        error: { reason: "Refused" },
      });
  });

  describe.each<[string, Cluster, string]>([
    ["pods", { room: () => ({ type: "unknown", message: "pods: forbidden" }) }, "pods: forbidden"],
    ["nodes", { nodes: () => undefined }, "the controller may not list nodes (rbac.nodes)"],
  ])("without the permission to list %s", (_, cluster, message) => {
    it("finds nothing for a deferred resize, and says why", async () => {
      expect((await searched(cluster, ["full"])).outcome).toMatchObject({
        error: { reason: "NoNodeHasRoom", message: expect.stringContaining(message) },
      });
    });

    it("lets a rollout show the outcome", async () => {
      expect((await searched(cluster)).outcome?.type).toBe("done");
    });
  });
});
