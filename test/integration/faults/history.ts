import type { PipeScaling } from "../../../src/crd/pipe-scaling.ts";
import type { KubeObject, Lease, Pod, ReplicaSet } from "../../../src/kube/objects.ts";
import type { ManagedDeployment } from "../../e2e/demo/ownership.ts";

/** The kinds that are watched, as they are on the wire. */
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
    /** It was there before anybody looked: how it came about is not known. */
    readonly isInitial: boolean;
    /** When it was seen, by the observer's monotonic clock. */
    readonly atMs: number;
  };
}[Kind];

export type Entry =
  | Sighting
  /** From here on the service may be given this size; `after` is the newest version known by then. */
  | { readonly type: "accepted"; readonly serviceId: string; readonly size: string; readonly after: bigint }
  /** The events of this kind between two versions were not observed completely. */
  | { readonly type: "gap"; readonly kind: Kind; readonly after: bigint; readonly until: bigint };

/**
 * When it happened. Versions of one etcd are one sequence over all kinds, so they tell the order in which
 * things happened, whatever the order in which several watches delivered them.
 */
export function versionOf(entry: Entry): bigint {
  switch (entry.type) {
    case "seen":
    case "gone":
      return BigInt(entry.object.metadata.resourceVersion);
    case "accepted":
      return entry.after;
    case "gap":
      return entry.until;
  }
}

/** In the order of what happened; a repeated sighting counts once. */
export function inOrder(entries: readonly Entry[]): Entry[] {
  const byKey = new Map(entries.map((entry, index) => [keyOf(entry) ?? index, entry]));
  return [...byKey.values()].sort((a, b) => Number(versionOf(a) - versionOf(b)));
}

function keyOf(entry: Entry): string | undefined {
  if (entry.type === "accepted" || entry.type === "gap") return undefined;
  return `${entry.type} ${entry.object.metadata.uid} ${entry.object.metadata.resourceVersion}`;
}
