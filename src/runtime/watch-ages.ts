import type { Clock } from "./clock.ts";
import type { Informer } from "./informer.ts";

/**
 * Milliseconds since the API server last confirmed the cached objects, by kind: the oldest if a kind has several
 * informers, and Infinity if one of them has not been filled yet.
 */
export function watchAges(
  informers: readonly Pick<Informer, "resource" | "isSynced" | "lastContact">[],
  clock: Pick<Clock, "monotonic">,
): ReadonlyMap<string, number> {
  const now = clock.monotonic();
  const ages = new Map<string, number>();
  for (const { resource, isSynced, lastContact } of informers) {
    const ageMs = isSynced ? now - lastContact : Number.POSITIVE_INFINITY;
    ages.set(resource, Math.max(ageMs, ages.get(resource) ?? 0));
  }
  return ages;
}
