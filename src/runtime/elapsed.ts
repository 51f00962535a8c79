/**
 * Returns the milliseconds since a time, usually one that is stored in the cluster.
 *
 * A stored time can be wrong: another clock wrote it, a person edited it, or a backup restored it. So a time in the
 * future, or one that cannot be parsed, counts as now.
 *
 * @param stampMs milliseconds by the same clock as `nowMs`; NaN if it cannot be parsed
 */
export function elapsedMs(stampMs: number, nowMs: number): number {
  return Number.isFinite(stampMs) ? Math.max(0, nowMs - stampMs) : 0;
}
