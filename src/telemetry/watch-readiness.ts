import type { Readiness } from "./ops-server.ts";

/**
 * The controller serves no requests, but the rollout of its own Deployment waits until it is ready, so a release that
 * cannot watch a kind stops that rollout. This limit tolerates a short outage of the API server: bookmarks confirm a
 * watch every minute, and after three minutes a list replaces a silent watch.
 */
const MAX_WATCH_AGE_MS = 300_000;

/** @param ages milliseconds since the last contact by kind; Infinity if the kind has not been read yet */
export function readinessOf(ages: ReadonlyMap<string, number>): Readiness {
  const missing = [...ages].filter(([, ageMs]) => ageMs === Number.POSITIVE_INFINITY);
  if (missing.length > 0) {
    const kinds = missing.map(([resource]) => resource);
    return { ready: false, problem: `not read from the cluster yet: ${kinds.join(", ")}` };
  }
  const stale = [...ages].filter(([, ageMs]) => ageMs > MAX_WATCH_AGE_MS);
  if (stale.length === 0) return { ready: true };
  const kinds = stale.map(([resource, ageMs]) => `${resource} (for ${Math.round(ageMs / 1000)} s)`);
  return { ready: false, problem: `no contact with the API server's watch of: ${kinds.join(", ")}` };
}
