import type { Container, Pod, PodSpec } from "../kube/pods.ts";
import { wouldRequest } from "./fit.ts";
import type { NodeView } from "./node-view.ts";
import { type Amounts, amountOf, effectiveRequests, larger, podRequests } from "./pod-requests.ts";

/** A pod as it is stored, with all that the scheduler counts. */
export interface PlacedPod extends Pick<Pod, "metadata"> {
  readonly spec: PodSpec;
  readonly status?: NonNullable<Pod["status"]> & {
    readonly initContainerStatuses?: NonNullable<Pod["status"]>["containerStatuses"];
  };
}

/** A node, and the amounts that are reserved by its pods or promised to new ones. Pods that would stop are excluded. */
export interface UsedNode {
  readonly node: NodeView;
  readonly used: readonly Amounts[];
}

/** Room on a node that was promised to the new pods of a workload, and that they do not use yet. */
export interface PromisedRoom {
  /** UIDs of the old pods, on any node, that have ended before the new ones begin. */
  readonly replaced: ReadonlySet<string>;
  /** One for each new pod. */
  readonly amounts: readonly Amounts[];
}

/**
 * Returns the amounts that are reserved on a node by its pods, or promised to new ones. Where a new pod begins after
 * an old one has ended, the larger of the two counts.
 */
export function usedBy(pods: readonly PlacedPod[], promised: readonly PromisedRoom[]): readonly Amounts[] {
  const isOld = ({ metadata }: PlacedPod) => promised.some(({ replaced }) => replaced.has(metadata.uid));
  const inTurn = promised.flatMap(({ replaced, amounts }) => {
    const old = pods.filter(({ metadata }) => replaced.has(metadata.uid)).map(reservedBy);
    const pairs = amounts.map((each, index) => largerOf(each, old[index] ?? each));
    return [...pairs, ...old.slice(pairs.length)];
  });
  return [...pods.filter((each) => !isOld(each)).map(reservedBy), ...inTurn];
}

function largerOf(a: Amounts, b: Amounts): Amounts {
  return { cpu: larger(a.cpu, b.cpu), memory: larger(a.memory, b.memory) };
}

/**
 * Returns the amounts that a pod on a node has reserved. Like the scheduler, it counts for each container the largest
 * of the requests in the spec, the allocated and the actual ones; not those in the spec if the node can never grant
 * them.
 */
export function reservedBy({ spec, status = {} }: PlacedPod): Amounts {
  const { conditions = [], containerStatuses = [], initContainerStatuses = [] } = status;
  const isInfeasible = conditions.some(
    ({ type, reason }) => type === "PodResizePending" && reason === "Infeasible",
  );
  const statuses = [...containerStatuses, ...initContainerStatuses];
  const reserved = <T extends Container>(container: T): T => {
    const own = statuses.find(({ name }) => name === container.name);
    if (!own?.resources) return container;
    const running = [own.allocatedResources ?? {}, effectiveRequests(own)];
    const all = isInfeasible ? running : [...running, effectiveRequests(container)];
    const requests = { cpu: largestOf(all, "cpu"), memory: largestOf(all, "memory") };
    return { ...container, resources: { requests } };
  };
  return podRequests({
    ...spec,
    containers: spec.containers.map(reserved),
    // The status of an init container that has ended says nothing.
    initContainers: (spec.initContainers ?? []).map((each) =>
      each.restartPolicy === "Always" ? reserved(each) : each,
    ),
  });
}

type Requests = ReturnType<typeof effectiveRequests>;

function largestOf(all: readonly Requests[], resource: keyof Amounts): string {
  return all.reduce(
    (most, { [resource]: each = most }) => (amountOf(each) > amountOf(most) ? each : most),
    "0",
  );
}

/** Returns how many more pods with these requests fit on a node. */
export function countFitting(requests: Amounts, { node, used }: UsedNode): number {
  const times = (resource: keyof Amounts): number => {
    const free = used.reduce((rest, each) => rest - each[resource], node.allocatable[resource]);
    return requests[resource] === 0n ? Number.POSITIVE_INFINITY : Number(free / requests[resource]);
  };
  return Math.max(0, Math.min(times("cpu"), times("memory"), node.maxPods - used.length));
}

interface Counts {
  readonly pods: number;
  /** Number of the nodes that are large enough. */
  readonly nodes: number;
  /** Number of these nodes that were searched. */
  readonly searched: number;
  /** Number of the pods that have room. */
  readonly fitting: number;
  /** Nodes that are known to have no room were left out. */
  readonly isOther: boolean;
}

/** For people: the pods of a pipe have no room on the nodes now. */
export function describeLackOfRoom(
  spec: PodSpec,
  { pods, nodes, searched, fitting, isOther }: Counts,
): string {
  const other = isOther ? "other " : "";
  const room = fitting === 0 ? "for it" : `for more than ${fitting} of its ${pods} pods`;
  const all = `the ${nodes} ${other}nodes that are large enough`;
  const some = searched < nodes ? `the ${searched} nodes that were searched, of ${all},` : all;
  const many = `none of ${some} has room ${room} at present`;
  const few = [
    `no ${other}node is large enough`,
    `the one ${other}node that is large enough has no room ${room} at present`,
  ];
  return `${wouldRequest(podRequests(spec))}, and ${few[nodes] ?? many}: free or add capacity, or request a smaller size`;
}
