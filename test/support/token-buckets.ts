import fc from "fast-check";
import type { Quota } from "../../src/runtime/token-bucket.ts";

export const quotas = fc.record({
  requests: fc.integer({ min: 1, max: 12 }),
  windowMs: fc.integer({ min: 1, max: 5000 }),
});
/** Long enough for the buckets above to refill completely. */
export const pauses = fc.oneof(
  fc.constant(0),
  fc.integer({ min: 0, max: 500 }),
  fc.integer({ min: 0, max: 6000 }),
);

/** Finds two points in time between which more requests were allowed than a full bucket and its refill. */
export function excess(admitted: readonly number[], { requests, windowMs }: Quota): unknown {
  for (const [first, from] of admitted.entries()) {
    for (const [last, to] of admitted.entries()) {
      const most = requests + Math.floor(((to - from) * requests) / windowMs);
      if (last >= first && last - first + 1 > most) return { from, to, admitted: last - first + 1, most };
    }
  }
  return undefined;
}
