import type { Pod, PodSpec } from "../kube/pods.ts";
import { wouldRequest } from "./fit.ts";
import type { NodeView } from "./node-view.ts";
import { type Amounts, podRequests } from "./pod-requests.ts";

/** A pod as it is stored, with all that the scheduler counts. */
export interface PlacedPod extends Pick<Pod, "metadata" | "status"> {
  readonly spec: PodSpec;
}

/** A node, and the amounts that its pods have reserved, without those of pods that would stop. */
export interface UsedNode {
  readonly node: NodeView;
  readonly used: readonly Amounts[];
}

/** Returns the amounts that a pod on a node has reserved. During a resize, the scheduler counts the largest of all values. */
export function reservedBy({ spec, status }: PlacedPod): Amounts {
  const statuses = status?.containerStatuses ?? [];
  const withRequests = (requestsOf: (each: (typeof statuses)[number]) => Readonly<Record<string, string>>) =>
    podRequests({
      ...spec,
      containers: spec.containers.map((container) => {
        const own = statuses.find(({ name }) => name === container.name);
        if (!own) return container;
        const requests = { ...container.resources?.requests, ...requestsOf(own) };
        return { ...container, resources: { ...container.resources, requests } };
      }),
    });
  const all = [
    podRequests(spec),
    withRequests(({ allocatedResources = {} }) => allocatedResources),
    withRequests(({ resources }) => resources?.requests ?? {}),
  ];
  const largest = (a: bigint, b: bigint) => (a > b ? a : b);
  return all.reduce((a, b) => ({ cpu: largest(a.cpu, b.cpu), memory: largest(a.memory, b.memory) }));
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
  /** Number of those of them that were searched. */
  readonly searched: number;
  /** Number of the pods that have room. */
  readonly fitting: number;
  /** The nodes are others than those of the old pods. */
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
