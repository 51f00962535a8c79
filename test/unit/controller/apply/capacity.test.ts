import { describe, expect, it } from "vitest";
import { type NodeView, toNodeView } from "../../../../src/capacity/node-view.ts";
import type { RoomRequest, RoomResult } from "../../../../src/capacity/rooms.ts";
import { checkRoom } from "../../../../src/controller/apply/check-room.ts";
import { dryRun } from "../../../../src/controller/apply/dry-run.ts";
import { toPipeView } from "../../../../src/controller/observe/workloads/deployment.ts";
import { sizeOfCores } from "../../../../src/domain/size.ts";
import type { KubeRequest } from "../../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../../src/kube/errors.ts";
import { aCommitter, aDeployment } from "../../../support/fixtures/committing.ts";
import { aNode } from "../../../support/fixtures/node.ts";
import { aPod } from "../../../support/fixtures/pod.ts";
import { aRollout } from "../../../support/fixtures/snapshot.ts";

const POD = aPod("a-1");
const NODE = toNodeView(aNode("node", { cpu: "16", memory: "64Gi" }));
const error = (code: number, message: string) => new KubeApiError("GET", code, JSON.stringify({ message }));

interface Cluster {
  /** The response to the dry run of the resize of the pod. */
  readonly ofPod?: () => unknown;
  readonly nodes?: () => readonly NodeView[] | undefined;
  readonly room?: () => RoomResult;
}

/** The applier of a pipe whose Deployment accepts every write. */
function setup({ ofPod = () => ({}), nodes = () => [NODE], room = () => ({ type: "room" }) }: Cluster) {
  const pipe = toPipeView(aDeployment());
  const write = ({ path }: KubeRequest) => (path.endsWith("/resize") ? ofPod() : aDeployment({ cores: 4 }));
  const made = aCommitter({ deployment: aDeployment(), write });
  made.caches.pipes.apply(pipe);
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
  const { applier, action, asked, writes } = setup(cluster);
  const checks = { isCommit: false, checksNodes: true, stopping: [POD], triedPod: POD } as const;
  await dryRun(applier, { type: "dry-run", ...action, ...checks });
  return { outcome: applier.writes.get("uid-a", "dry-run")?.outcome, asked, writes: writes() };
}

async function searched(cluster: Cluster) {
  const { applier, action, asked } = setup(cluster);
  await checkRoom(applier, { type: "check-room", ...action, stopping: [POD], fullNodes: ["full"] });
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
  ])("is refused, and room is not searched for, if the pod gets %i %s", async (code, message) => {
    const { outcome, asked } = await tried({ ofPod: throwing(error(code, message)) });
    expect(outcome).toMatchObject({
      error: { reason: "Refused", message: expect.stringContaining(`${message}; `) },
    });
    expect(asked).toEqual([]);
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

  it("must have room on a node, and a controller that may not find out lets the rollout show it", async () => {
    const none = () => ({ type: "none", message: "full" }) as const;
    expect((await tried({ room: none })).outcome).toMatchObject({
      error: { reason: "NoNodeHasRoom", message: "full" },
    });
    const { outcome, asked } = await tried({ room: () => ({ type: "unknown", message: "forbidden" }) });
    expect(outcome?.type).toBe("done");
    expect(asked).toMatchObject([
      { uid: "uid-a", pods: 1, stopping: [{ uid: "uid-a-1", node: "node" }], fullNodes: [], attempt: 1 },
    ]);
    const unlisted = await tried({ nodes: () => undefined });
    expect({ type: unlisted.outcome?.type, asked: unlisted.asked }).toEqual({ type: "done", asked: [] });
  });

  it("is tried again soon if pods or nodes cannot be listed", async () => {
    const broken = throwing(error(500, "etcd"));
    expect((await tried({ room: broken })).outcome).toMatchObject({
      error: { reason: "WriteFailed", message: "the pods cannot be listed: etcd" },
    });
    expect((await tried({ nodes: broken })).outcome).toMatchObject({
      error: { reason: "WriteFailed", message: "the nodes cannot be listed: etcd" },
    });
  });
});

describe("the search for room of a deferred resize", () => {
  it("succeeds only if other nodes have room", async () => {
    const { outcome, asked } = await searched({});
    expect(outcome?.type).toBe("done");
    expect(asked).toMatchObject([{ fullNodes: ["full"] }]);
    const none = () => ({ type: "none", message: "full" }) as const;
    expect((await searched({ room: none })).outcome).toMatchObject({ error: { reason: "NoNodeHasRoom" } });
  });

  it.each<[string, Cluster, string]>([
    ["pods", { room: () => ({ type: "unknown", message: "pods: forbidden" }) }, "pods: forbidden"],
    ["nodes", { nodes: () => undefined }, "the controller may not list nodes (rbac.nodes)"],
  ])("finds nothing, and says why, if the controller may not list %s", async (_, cluster, message) => {
    expect((await searched(cluster)).outcome).toMatchObject({
      error: { reason: "NoNodeHasRoom", message: expect.stringContaining(message) },
    });
  });
});
