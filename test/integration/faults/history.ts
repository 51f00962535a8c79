import type { PipeScaling } from "../../../src/crd/pipe-scaling.ts";
import type { KubeObject, Lease } from "../../../src/kube/objects.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { ReplicaSet } from "../../../src/kube/workloads.ts";
import type { ManagedDeployment } from "../../e2e/demo/ownership.ts";
import type { Limit } from "./restart-judge.ts";

/** The watched kinds, as the API server sends them. */
export interface Kinds {
  readonly Deployment: ManagedDeployment;
  readonly ReplicaSet: ReplicaSet;
  readonly Pod: Pod;
  readonly PipeScaling: KubeObject & PipeScaling;
  readonly Event: KubeObject & { readonly reportingController?: string };
  readonly Lease: Lease;
}
export type Kind = keyof Kinds;

export type Sighting = {
  [K in Kind]: {
    readonly type: "seen" | "gone";
    readonly kind: K;
    readonly object: Kinds[K];
    /** The object existed before the observation, so earlier changes are unknown. */
    readonly isInitial: boolean;
    /** Time of the observation: monotonic, in milliseconds. */
    readonly atMs: number;
  };
}[Kind];

export type Entry =
  | Sighting
  /** The controller may apply this size from now on; `after` is the newest version known at that time. */
  | { readonly type: "accepted"; readonly serviceId: string; readonly size: string; readonly after: bigint }
  /** From now on, the API server refuses larger sizes of the service, or none any more. */
  | ({ readonly type: "limited"; readonly after: bigint } & Limit)
  /** The events of this kind between two versions were not observed completely. */
  | { readonly type: "gap"; readonly kind: Kind; readonly after: bigint; readonly until: bigint };

/**
 * The version of an entry, which defines its place in the history: resource versions of all kinds in one etcd are one
 * sequence, while several watches deliver events in any order.
 */
export function versionOf(entry: Entry): bigint {
  switch (entry.type) {
    case "seen":
    case "gone":
      return BigInt(entry.object.metadata.resourceVersion);
    case "accepted":
    case "limited":
      return entry.after;
    case "gap":
      return entry.until;
  }
}

/** Sorts entries by version, without duplicates. */
export function inOrder(entries: readonly Entry[]): Entry[] {
  const byKey = new Map(entries.map((entry, index) => [keyOf(entry) ?? index, entry]));
  return [...byKey.values()].sort((a, b) => Number(versionOf(a) - versionOf(b)));
}

function keyOf(entry: Entry): string | undefined {
  if (entry.type !== "seen" && entry.type !== "gone") return undefined;
  return `${entry.type} ${entry.object.metadata.uid} ${entry.object.metadata.resourceVersion}`;
}
