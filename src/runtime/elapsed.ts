/**
 * Milliseconds from a time that the cluster stored until now.
 *
 * A stored time can be wrong: another clock wrote it, a person edited it, or a backup restored it. So a time in the
 * future, or one that cannot be parsed and has no lower bound, counts as now, and a time before the lower bound counts
 * as the lower bound.
 *
 * @param stampMs milliseconds since 1970; NaN if it cannot be parsed
 * @param notBeforeMs for example the creation of the object that has the time
 */
export function elapsedMs(stampMs: number, nowMs: number, notBeforeMs = Number.NEGATIVE_INFINITY): number {
  const known = [stampMs, notBeforeMs].filter(Number.isFinite);
  return known.length === 0 ? 0 : Math.max(0, nowMs - Math.max(...known));
}
