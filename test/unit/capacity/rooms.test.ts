import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toNodeView } from "../../../src/capacity/node-view.ts";
import { podRequests } from "../../../src/capacity/pod-requests.ts";
import { countFitting, type PlacedPod, reservedBy } from "../../../src/capacity/room.ts";
import { type RolloutProgress, type RoomRequest, Rooms } from "../../../src/capacity/rooms.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import type { Node } from "../../../src/kube/objects.ts";
import type { ContainerStatus } from "../../../src/kube/pods.ts";
import { FakeClock } from "../../support/fakes/fake-clock.ts";
import { aNode } from "../../support/fixtures/node.ts";

const MINUTE = 60_000;

/** A pod of so many cores, with 4 Gi for each. */
function aPlacedPod(name: string, cores: number, own: Partial<ContainerStatus> = {}): PlacedPod {
  return {
    metadata: { name, uid: `uid-${name}`, resourceVersion: "1" },
    spec: { containers: [{ name: "pipe", resources: { requests: amounts(cores) } }] },
    status: { phase: "Running", containerStatuses: [{ name: "pipe", ...own }] },
  };
}

const amounts = (cores: number, gib = cores * 4) => ({ cpu: `${cores}`, memory: `${gib}Gi` });

const node = (name: string, cores: number, spec: Parameters<typeof aNode>[2] = {}, pods = "110") =>
  aNode(name, { ...amounts(cores), pods }, spec);

/** A pipe whose new pods need so many cores. */
function asks(name: string, cores: number, changes: Partial<RoomRequest> = {}): RoomRequest {
  const { spec } = aPlacedPod(name, cores);
  return {
    uid: name,
    spec,
    pods: 1,
    stopping: [{ uid: `uid-${name}`, node: "own" }],
    isInTurn: true,
    fullNodes: [],
    attempt: 1,
    lastsMs: 15 * MINUTE,
    rollout: () => ({ isInProgress: false, placedOn: [] }),
    ...changes,
  };
}

const FORBIDDEN = 'pods is forbidden: User "controller" cannot list resource "pods" at the cluster scope';

const refusal = (code: number, message: string, isSoonAfterOutage = false) =>
  new KubeApiError("GET /api/v1/pods", code, JSON.stringify({ message }), { isSoonAfterOutage });

function setup(nodes: readonly Node[], placed: Readonly<Record<string, readonly PlacedPod[]>> = {}) {
  const clock = new FakeClock();
  const requests: KubeRequest[] = [];
  const state: { error?: Error } = {};
  const client = {
    async json<T>(request: KubeRequest): Promise<T> {
      requests.push(request);
      if (state.error) throw state.error;
      const name = /^spec\.nodeName=([^,]*),/.exec(String(request.query?.["fieldSelector"]))?.[1] ?? "";
      return JSON.parse(JSON.stringify({ metadata: { resourceVersion: "9" }, items: placed[name] ?? [] }));
    },
  };
  const rooms = new Rooms({ client, clock });
  const find = async (request: RoomRequest) => (await rooms.find(request, nodes.map(toNodeView))).type;
  return { clock, requests, state, rooms, find, views: nodes.map(toNodeView) };
}

describe("the room for the new pods of a pipe that stops its old pods first", () => {
  it("is what other pods of a node leave, the room of the old pod included", async () => {
    const { find, requests } = setup([node("a", 8)], { a: [aPlacedPod("own", 2), aPlacedPod("other", 4)] });
    expect(await find(asks("own", 4))).toBe("room");
    expect(await find(asks("own", 5))).toBe("none");
    expect(requests[0]).toMatchObject({
      path: "/api/v1/pods",
      query: { fieldSelector: "spec.nodeName=a,status.phase!=Succeeded,status.phase!=Failed" },
    });
  });

  it("is reported with the request and the number of nodes if there is none", async () => {
    const full = { a: [aPlacedPod("x", 4)], b: [aPlacedPod("y", 4)] };
    const { rooms, views } = setup([node("a", 8), node("b", 8), node("small", 2)], full);
    expect(await rooms.find(asks("own", 6), views)).toEqual({
      type: "none",
      message:
        "its pod would request 6 cpu / 24 Gi, and none of the 2 nodes that are large enough has room for it at present: free or add capacity, or request a smaller size",
    });
    expect(await rooms.find(asks("own", 3, { pods: 3 }), views)).toMatchObject({
      message: expect.stringContaining("has room for more than 2 of its 3 pods at present"),
    });
  });

  it("is searched only on other nodes than those that are known to be full", async () => {
    const { rooms, views, requests } = setup([node("a", 8), node("b", 8), node("c", 8)]);
    const message = async (fullNodes: string[], cores: number) => {
      const found = await rooms.find(asks("own", cores, { fullNodes }), views);
      return found.type === "none" ? found.message : found.type;
    };
    expect(await message(["a", "b", "c"], 4)).toContain("and no other node is large enough: free or add");
    expect(requests).toEqual([]);
    expect(await message(["a", "b"], 4)).toBe("room");
    const full = setup([node("a", 8), node("b", 8)], { b: [aPlacedPod("x", 8)] });
    expect(await full.rooms.find(asks("own", 4, { fullNodes: ["a"] }), full.views)).toMatchObject({
      message: expect.stringContaining(
        "the one other node that is large enough has no room for it at present",
      ),
    });
  });

  it("does not exist on a node that the pod may not run on, or that runs as many pods as it can", async () => {
    const taints = [{ key: "dedicated", effect: "NoSchedule" }];
    const { find, requests } = setup([node("a", 64, { taints }), node("b", 64, { unschedulable: true })]);
    expect(await find(asks("own", 4))).toBe("none");
    expect(requests).toEqual([]);
    const crowded = (pods: string) => setup([node("a", 64, {}, pods)], { a: [aPlacedPod("other", 1)] });
    expect(await crowded("1").find(asks("own", 4))).toBe("none");
    expect(await crowded("1k").find(asks("own", 4))).toBe("room");
  });

  it("counts the pods that terminate, and the larger size of a pod that is being resized", async () => {
    const growing = { allocatedResources: amounts(1), resources: { requests: amounts(1) } };
    const shrinking = { allocatedResources: amounts(2), resources: { requests: amounts(6) } };
    for (const other of [aPlacedPod("other", 6, growing), aPlacedPod("other", 1, shrinking)]) {
      const ending = { ...other, metadata: { ...other.metadata, deletionTimestamp: "2026-01-01T00:00:00Z" } };
      const { find } = setup([node("a", 8)], { a: [ending] });
      expect(await find(asks("own", 2))).toBe("room");
      expect(await find(asks("own", 3))).toBe("none");
    }
  });

  it("is promised to one pipe at a time, even if several ask at once, and for two minutes if no rollout begins", async () => {
    const { find, clock } = setup([node("a", 8)]);
    const answers = await Promise.all(["a", "b", "c"].map((name) => find(asks(name, 4))));
    expect(answers).toEqual(["room", "room", "none"]);
    expect(await find(asks("b", 4))).toBe("room");
    await clock.advance(119_999);
    expect(await find(asks("c", 4))).toBe("none");
    await clock.advance(1);
    expect(await find(asks("c", 4))).toBe("room");
  });

  describe("that was promised", () => {
    /** Two nodes of 8 cores, and a promise of two times 6 cores to a workload whose rollout is in progress. */
    async function promised(lastsMs = 15 * MINUTE) {
      const placed: Record<string, PlacedPod[]> = { a: [], b: [] };
      const made = setup([node("a", 8), node("b", 8)], placed);
      const progress: { -readonly [key in keyof RolloutProgress]: RolloutProgress[key] } = {
        isInProgress: true,
        placedOn: [],
      };
      const request = asks("set", 6, { pods: 2, lastsMs, rollout: () => progress });
      expect(await made.find(request)).toBe("room");
      return { ...made, placed, progress };
    }

    it("stays promised while the rollout is in progress, and for no longer than it may take", async () => {
      const { find, clock } = await promised(60 * MINUTE);
      await clock.advance(62 * MINUTE - 1);
      expect(await find(asks("other", 4))).toBe("none");
      expect(await find(asks("small", 2))).toBe("room");
      await clock.advance(1);
      expect(await find(asks("other", 4))).toBe("room");
    });

    it("is free again when the rollout is complete or has failed", async () => {
      const { find, clock, progress } = await promised();
      await clock.advance(10 * MINUTE);
      expect(await find(asks("other", 4))).toBe("none");
      progress.isInProgress = false;
      expect(await find(asks("other", 4))).toBe("room");
    });

    it("is counted once when the new pods use it, one after another", async () => {
      const { find, placed, progress } = await promised();
      placed["a"]?.push(aPlacedPod("set-1", 6));
      expect(await find(asks("other", 2, { fullNodes: ["b"] }))).toBe("none");
      progress.placedOn = ["a"];
      expect(await find(asks("other", 2, { fullNodes: ["b"] }))).toBe("room");
      expect(await find(asks("another", 4, { fullNodes: ["a"] }))).toBe("none");
    });

    it("is free on the nodes that new pods got, and on no other one", async () => {
      const { find, progress } = await promised();
      progress.placedOn = ["c", "b", "b"];
      expect(await find(asks("other", 8, { pods: 2 }))).toBe("none");
      expect(await find(asks("other", 8))).toBe("room");
    });
  });

  describe("that was promised in place of old pods", () => {
    interface Case {
      readonly nodes: readonly Node[];
      /** Cores of each pod. */
      readonly old: number;
      readonly size: number;
      readonly pods: number;
      readonly isInTurn?: boolean;
    }

    /** The old pods of a workload on node a, after a promise to its new pods. */
    async function replacing({ nodes, old, size, pods, isInTurn = true }: Case) {
      const names = Array.from({ length: pods }, (_, index) => `set-${index}`);
      const placed = { a: names.map((name) => aPlacedPod(name, old)) };
      const made = setup(nodes, placed);
      const placedOn: string[] = [];
      const stopping = names.map((name) => ({ uid: `uid-${name}`, node: "a" }));
      const rollout = () => ({ isInProgress: true, placedOn });
      expect(await made.find(asks("set", size, { pods, stopping, isInTurn, rollout }))).toBe("room");
      await made.clock.advance(5 * MINUTE);
      const end = () => void placed.a.shift();
      const place = () => {
        placed.a.push(aPlacedPod(`new-${placedOn.length}`, size));
        placedOn.push("a");
      };
      /** The most cores that another pipe would get on node a. */
      const free = async () => {
        const sizes = Array.from({ length: 32 }, (_, index) => index + 1);
        const found = await Promise.all(
          sizes.map((each) => made.find(asks("other", each, { fullNodes: ["b"] }))),
        );
        return found.lastIndexOf("room") + 1;
      };
      return { ...made, end, place, free };
    }

    it("is not counted beside the old pods", async () => {
      const { end, place, free } = await replacing({ nodes: [node("a", 32)], old: 2, size: 3, pods: 10 });
      expect(await free()).toBe(2);
      for (let replaced = 0; replaced < 10; replaced += 1) {
        end();
        expect(await free()).toBe(2);
        place();
        expect(await free()).toBe(2);
      }
    });

    it("stays promised to a new pod whose old one has ended, while larger old ones have not", async () => {
      const { end, place, free } = await replacing({ nodes: [node("a", 22)], old: 10, size: 5, pods: 2 });
      const counts: number[] = [];
      for (const step of [end, place, end, place]) {
        counts.push(await free());
        step();
      }
      expect(counts).toEqual([2, 7, 7, 12]);
      expect(await free()).toBe(12);
    });

    it("is counted beside the old pods if new ones can begin before they have ended", async () => {
      const nodes = [node("a", 22)];
      const { end, free } = await replacing({ nodes, old: 4, size: 5, pods: 2, isInTurn: false });
      expect(await free()).toBe(4);
      end();
      expect(await free()).toBe(8);
    });

    it("counts an old pod in full if its new pod gets another node", async () => {
      const nodes = [node("a", 16), node("b", 16)];
      const { end, free } = await replacing({ nodes, old: 4, size: 7, pods: 3 });
      // Two new pods are promised room here.
      expect(await free()).toBe(0);
      end();
      expect(await free()).toBe(2);
    });

    it("counts an old pod and the new one as one of the pods of the node", async () => {
      const nodes = [node("a", 32, {}, "3")];
      const { find } = await replacing({ nodes, old: 2, size: 3, pods: 2 });
      expect(await find(asks("other", 1))).toBe("room");
      expect(await find(asks("another", 1))).toBe("none");
    });
  });

  it("is unknown without the permission to list the pods of all namespaces", async () => {
    const { find, state } = setup([node("a", 8)]);
    state.error = refusal(403, FORBIDDEN);
    expect(await find(asks("own", 4))).toBe("unknown");
    delete state.error;
    expect(await find(asks("own", 4))).toBe("room");
  });

  it.each([
    ["the API server has another problem", refusal(500, "etcd")],
    ["the API server refuses a list soon after an outage", refusal(403, FORBIDDEN, true)],
    [
      "the API server does not know its roles yet",
      refusal(403, `${FORBIDDEN}: RBAC: clusterrole.rbac.authorization.k8s.io "controller" not found`),
    ],
    ["a proxy responds 403", refusal(403, "blocked")],
  ])("is searched again later if %s", async (_, error) => {
    const { find, state } = setup([node("a", 8)]);
    state.error = error;
    await expect(find(asks("own", 4))).rejects.toBe(error);
    delete state.error;
    expect(await find(asks("own", 4))).toBe("room");
  });

  it("is searched on its own node and at most 50 others at once, and on the rest in later attempts", async () => {
    const nodes = Array.from({ length: 120 }, (_, index) => node(`n${index}`, 8));
    const full = nodes.slice(0, 119).map(({ metadata }) => [metadata.name, [aPlacedPod("x", 8)]] as const);
    const { find, rooms, requests, views } = setup([...nodes, node("own", 8)], {
      ...Object.fromEntries(full),
      own: [aPlacedPod("x", 8)],
    });
    expect(await rooms.find(asks("own", 4, { attempt: 0 }), views)).toMatchObject({
      type: "none",
      message: expect.stringContaining(
        "none of the 51 nodes that were searched, of the 121 nodes that are large enough, has room for it at present",
      ),
    });
    expect(await find(asks("own", 4, { attempt: 1 }))).toBe("none");
    expect(requests).toHaveLength(102);
    expect(await find(asks("own", 4, { attempt: 2 }))).toBe("room");
  });
});

describe("the amounts that a pod on a node has reserved", () => {
  type Running = Partial<Pick<ContainerStatus, "allocatedResources" | "resources">>;
  interface Case {
    readonly requested: number;
    readonly allocated: number;
    readonly actual: number;
  }
  /** CPU and memory change in opposite directions. */
  const sized = (cores: number) => amounts(cores, 10 - cores);
  const container = (name: string, { requested }: Case) => ({
    name,
    resources: { requests: sized(requested) },
  });
  const statusOf = (name: string, { allocated, actual }: Case): ContainerStatus & Running => ({
    name,
    allocatedResources: sized(allocated),
    resources: { requests: sized(actual) },
  });
  const growing = { requested: 8, allocated: 1, actual: 1 };
  const shrinking = { requested: 1, allocated: 8, actual: 8 };
  const sizeOf = (pod: PlacedPod) => {
    const { cpu, memory } = reservedBy(pod);
    return [Number(cpu / 1_000_000_000n), Number(memory / 1_000_000_000n / 2n ** 30n)];
  };
  const { metadata } = aPlacedPod("other", 1);

  it("are the sum of the largest of each container, so one that grows and one that shrinks count in full", () => {
    const spec = { containers: [container("a", growing), container("b", shrinking)] };
    const containerStatuses = [statusOf("a", growing), statusOf("b", shrinking)];
    expect(sizeOf({ metadata, spec, status: { containerStatuses } })).toEqual([16, 18]);
  });

  it("include the actual size of a sidecar, but not that of an init container that has ended", () => {
    const [sidecar, first] = [container("sidecar", shrinking), container("first", shrinking)];
    const spec = {
      containers: [container("a", growing)],
      initContainers: [{ ...sidecar, restartPolicy: "Always" }, first],
    };
    const initContainerStatuses = [statusOf("sidecar", shrinking), statusOf("first", shrinking)];
    const containerStatuses = [statusOf("a", growing)];
    expect(sizeOf({ metadata, spec, status: { containerStatuses, initContainerStatuses } })).toEqual([
      16, 18,
    ]);
  });

  it("do not include requests that the node can never grant, but those that it grants later", () => {
    const spec = { containers: [container("a", growing)] };
    const withReason = (reason: string): PlacedPod => ({
      metadata,
      spec,
      status: {
        conditions: [{ type: "PodResizePending", status: "True", reason }],
        containerStatuses: [statusOf("a", growing)],
      },
    });
    expect(["Infeasible", "Deferred"].map((reason) => sizeOf(withReason(reason)))).toEqual([
      [1, 9],
      [8, 9],
    ]);
  });

  it("are the requests of the spec while the kubelet has reported no resources", () => {
    const spec = { containers: [container("a", growing)] };
    const conditions = [{ type: "PodResizePending", status: "True", reason: "Infeasible" }];
    expect(sizeOf({ metadata, spec, status: { conditions, containerStatuses: [{ name: "a" }] } })).toEqual([
      8, 2,
    ]);
  });
});

const RESOURCES = ["cpu", "memory"] as const;

/** Cores and Gi. */
const sizeFrom = (min: number) =>
  fc.record({ cpu: fc.integer({ min, max: 12 }), memory: fc.integer({ min, max: 12 }) });

it("pods that fit on a node never request more than the others leave, and one more would", () => {
  fc.assert(
    fc.property(sizeFrom(1), sizeFrom(0), fc.array(sizeFrom(0), { maxLength: 5 }), (size, total, others) => {
      const requestsOf = ({ cpu, memory }: typeof size) =>
        podRequests({ containers: [{ name: "pipe", resources: { requests: amounts(cpu, memory) } }] });
      const view = toNodeView(aNode("a", { ...amounts(total.cpu, total.memory), pods: "110" }));
      const count = countFitting(requestsOf(size), { node: view, used: others.map(requestsOf) });
      const free = (of: "cpu" | "memory") => others.reduce((rest, each) => rest - each[of], total[of]);
      for (const of of RESOURCES) expect(count * size[of]).toBeLessThanOrEqual(Math.max(0, free(of)));
      expect(RESOURCES.some((of) => (count + 1) * size[of] > free(of))).toBe(true);
    }),
  );
});
