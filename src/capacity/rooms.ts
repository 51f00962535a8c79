import type { KubeClient } from "../kube/client.ts";
import { isForbiddenByRbac, isWithoutRoles } from "../kube/errors.ts";
import { collectionPath, PODS } from "../kube/paths.ts";
import type { PodSpec } from "../kube/pods.ts";
import type { Clock } from "../runtime/clock.ts";
import { listPages } from "../runtime/list-pages.ts";
import { nodesFor } from "./fit.ts";
import type { NodeView } from "./node-view.ts";
import { type Amounts, podRequests } from "./pod-requests.ts";
import { countFitting, describeLackOfRoom, type PlacedPod, type PromisedRoom, usedBy } from "./room.ts";

/** New pods that need room, in place of old ones that stop first. */
export interface RoomRequest {
  /** UID of the workload. Room that was promised to it before is free for it. */
  readonly uid: string;
  readonly spec: PodSpec;
  readonly pods: number;
  /** The old pods, whose room becomes free. Their nodes are looked at first. */
  readonly stopping: readonly { readonly uid: string; readonly node: string }[];
  /** Each new pod begins after an old one has ended. Otherwise, both can use room for some time. */
  readonly isInTurn: boolean;
  /** Names of nodes that are known to have no room. */
  readonly fullNodes: readonly string[];
  /** Number of the searches before this one, so that each one begins with other nodes. */
  readonly attempt: number;
  /** The time that the rollout may take. */
  readonly lastsMs: number;
  /** Shows later how far the rollout is. */
  readonly rollout: () => RolloutProgress;
}

export interface RolloutProgress {
  /** False before it begins, and as soon as it is complete or has failed. */
  readonly isInProgress: boolean;
  /** The node of each new pod that has one. */
  readonly placedOn: readonly string[];
}

export type RoomResult =
  | { readonly type: "room" }
  | { readonly type: "none"; readonly message: string }
  /** The controller may not list the pods of all namespaces. */
  | { readonly type: "unknown"; readonly message: string };

interface Place {
  readonly node: string;
  readonly amounts: Amounts;
}

interface Promised extends Pick<RoomRequest, "rollout"> {
  readonly places: readonly Place[];
  /** UIDs of the old pods that have ended before the new ones begin. */
  readonly replaced: ReadonlySet<string>;
  /** From then on, the room stays promised only while the rollout is in progress. */
  readonly begunUntilMs: number;
  readonly untilMs: number;
}

/** Besides those of old pods, a check searches at most this many nodes. The next check continues with the rest. */
const MAX_NODES = 50;

/** Time in which a rollout that found room begins, and in which its service sees that. */
const PROMISED_MS = 120_000;

/**
 * Finds out whether nodes have room now. Pods are listed on demand, node by node: a watch of all pods of the cluster
 * would cost far more than it is worth.
 */
export class Rooms {
  readonly #client: Pick<KubeClient, "json">;
  readonly #clock: Pick<Clock, "monotonic">;
  /** Room that was promised to each workload, by UID. Its new pods use it only later. */
  readonly #promised = new Map<string, Promised>();
  /** One check at a time, so that two callers are not promised the same room. */
  #last: Promise<unknown> = Promise.resolve();

  constructor({
    client,
    clock,
  }: {
    readonly client: Pick<KubeClient, "json">;
    readonly clock: Pick<Clock, "monotonic">;
  }) {
    this.#client = client;
    this.#clock = clock;
  }

  /**
   * @param nodes all nodes of the cluster
   * @throws KubeApiError or KubeUnreachableError if pods cannot be listed for another reason than a missing permission
   */
  find(request: RoomRequest, nodes: readonly NodeView[]): Promise<RoomResult> {
    const found = this.#last.then(() => this.#find(request, nodes));
    this.#last = found.catch(() => undefined);
    return found;
  }

  async #find(request: RoomRequest, all: readonly NodeView[]): Promise<RoomResult> {
    const { uid, spec, pods, attempt, fullNodes, lastsMs, rollout } = request;
    const requests = podRequests(spec);
    const nodes = nodesFor(spec, all).filter(({ name }) => !fullNodes.includes(name));
    const own = nodes.filter(({ name }) => request.stopping.some((each) => each.node === name));
    const others = nodes.filter((node) => !own.includes(node));
    const stopping = new Set(request.stopping.map((each) => each.uid));
    const replaced = new Set(request.isInTurn ? stopping : []);
    const places: Place[] = [];
    const begunUntilMs = this.#clock.monotonic() + PROMISED_MS;
    const searched = [...own, ...rotated(others, attempt).slice(0, MAX_NODES)];
    for (const node of searched) {
      // This comes first, so a pod that gets its node meanwhile counts twice rather than not at all.
      const promised = this.#promisedOn(node.name, uid);
      const listed = await this.#podsOn(node.name);
      if (!listed) return { type: "unknown", message: UNKNOWN };
      const remaining = listed.filter(({ metadata }) => !stopping.has(metadata.uid));
      const used = usedBy(remaining, promised);
      const fitting = Math.min(pods - places.length, countFitting(requests, { node, used }));
      for (let count = 0; count < fitting; count += 1) places.push({ node: node.name, amounts: requests });
      if (places.length < pods) continue;
      this.#promised.set(uid, { places, replaced, begunUntilMs, untilMs: begunUntilMs + lastsMs, rollout });
      return { type: "room" };
    }
    const counts = {
      pods,
      nodes: nodes.length,
      searched: searched.length,
      fitting: places.length,
      isOther: fullNodes.length > 0,
    };
    return { type: "none", message: describeLackOfRoom(spec, counts) };
  }

  #promisedOn(node: string, uid: string): readonly PromisedRoom[] {
    const nowMs = this.#clock.monotonic();
    for (const [each, { begunUntilMs, untilMs, rollout }] of this.#promised)
      if (begunUntilMs <= nowMs && (untilMs <= nowMs || !rollout().isInProgress)) this.#promised.delete(each);
    return [...this.#promised]
      .filter(([each]) => each !== uid)
      .map(([, promised]) => unusedOn(node, promised))
      .filter(({ amounts }) => amounts.length > 0);
  }

  /** Returns the pods on a node that have not ended; `undefined` without the permission to list them. */
  async #podsOn(node: string): Promise<readonly PlacedPod[] | undefined> {
    const fieldSelector = `spec.nodeName=${node},status.phase!=Succeeded,status.phase!=Failed`;
    const request = { path: collectionPath(PODS, undefined), query: { fieldSelector } };
    try {
      const { objects } = await listPages<PlacedPod, PlacedPod>(this.#client, request, (each) => [each]);
      return objects;
    } catch (error) {
      if (isForbiddenByRbac(error) && !isWithoutRoles(error)) return undefined;
      throw error;
    }
  }
}

/** New pods that run on a node use the promised room themselves. */
function unusedOn(node: string, { places, replaced, rollout }: Promised): PromisedRoom {
  const used = rollout().placedOn.filter((each) => each === node);
  const unused = places.filter((each) => each.node === node).slice(used.length);
  return { replaced, amounts: unused.map(({ amounts }) => amounts) };
}

const UNKNOWN =
  "the controller may list only the pods of its own namespaces, so it cannot find out whether another node has room: free capacity on the node of the pod, or request a smaller size";

/** Each attempt begins after the nodes of the one before. */
function rotated(nodes: readonly NodeView[], attempt: number): readonly NodeView[] {
  const start = nodes.length <= MAX_NODES ? 0 : (attempt * MAX_NODES) % nodes.length;
  return [...nodes.slice(start), ...nodes.slice(0, start)];
}
