import type { Node, Taint } from "../kube/objects.ts";
import { type Amounts, amountOf } from "./pod-requests.ts";

/** The fields of a node that determine which pods it can run. */
export interface NodeView {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly allocatable: Amounts;
  /** The maximum number of pods. */
  readonly maxPods: number;
}

/** Kubernetes also adds this taint to a cordoned node, a moment later. */
const CORDONED: Taint = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

export function toNodeView({ metadata, spec, status }: Node): NodeView {
  const { taints = [], unschedulable = false } = spec ?? {};
  return {
    name: metadata.name,
    labels: metadata.labels ?? {},
    taints: unschedulable ? [...taints, CORDONED] : taints,
    allocatable: {
      cpu: amountOf(status?.allocatable?.["cpu"]),
      memory: amountOf(status?.allocatable?.["memory"]),
    },
    maxPods: countOf(status?.allocatable?.["pods"]),
  };
}

/** A quantity, such as "110" or "1k". Without it, there is no maximum. */
function countOf(quantity: string | undefined): number {
  return quantity === undefined ? Number.POSITIVE_INFINITY : Number(amountOf(quantity)) / 1e9;
}
