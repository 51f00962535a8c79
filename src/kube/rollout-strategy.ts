import type { Deployment, StatefulSet } from "./workloads.ts";

/** Default of Kubernetes for both fields of a rolling update. */
const DEFAULT_SHARE = "25%";

/**
 * Returns true if a rollout of a Deployment stops old pods before their replacements run: with the strategy Recreate, a
 * maxSurge of 0, or a maxUnavailable of all replicas.
 */
export function stopsOldPodsFirst({ strategy, replicas = 1 }: Deployment["spec"]): boolean {
  if (strategy?.type === "Recreate") return true;
  const { maxSurge = DEFAULT_SHARE, maxUnavailable = DEFAULT_SHARE } = strategy?.rollingUpdate ?? {};
  const surge = countOf(maxSurge, replicas, Math.ceil);
  const unavailable = countOf(maxUnavailable, replicas, Math.floor);
  return replicas > 0 && (surge === 0 || unavailable >= replicas);
}

/** The number of pods of a StatefulSet that may be unavailable during a rolling update: at least one. */
export function maxUnavailableOf({ updateStrategy, replicas = 1 }: StatefulSet["spec"]): number {
  return Math.max(1, countOf(updateStrategy?.rollingUpdate?.maxUnavailable ?? 1, replicas, Math.floor));
}

/** @param share an absolute number, or a percentage of the replicas */
function countOf(share: number | string, replicas: number, round: (count: number) => number): number {
  if (typeof share === "number") return share;
  return round((Number.parseInt(share, 10) * replicas) / 100);
}
