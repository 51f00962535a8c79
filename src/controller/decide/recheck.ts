import type { Snapshot } from "../observe/snapshot.ts";
import type { Decision } from "./decide.ts";
import { phaseEndsAtMs, type Timing } from "./rollout-phase.ts";

/**
 * Returns the time at which the decision may change without an event, in milliseconds since 1970: a retry, the timeout
 * of a rollout, the end of a phase that other pipes wait for, or the recreation of a PipeScaling. `undefined` if only
 * an event can change it.
 */
export function recheckAtMs(
  { nowMs, deleted, scaling }: Snapshot,
  { sizing }: Decision,
  { policy }: Pick<Timing, "policy">,
): number | undefined {
  const times: number[] = [];
  if (!scaling && deleted) times.push(deleted.recreateAtMs);
  const window = sizing?.window;
  if (sizing?.holdBack === "window" && window && !window.open) times.push(window.opensAtMs);
  for (const { pipe, phase, recheckAtMs: atMs, state } of sizing?.assessments ?? []) {
    if (atMs !== undefined) times.push(atMs);
    const endsAtMs = phaseEndsAtMs(pipe, phase, { nowMs, policy });
    const isWaitedFor = sizing?.holdBack === "canary" || sizing?.holdBack === "service-limit";
    if (endsAtMs !== undefined && (isWaitedFor || state === "rolling")) times.push(endsAtMs);
  }
  const later = times.filter((atMs) => atMs > nowMs);
  return later.length === 0 ? undefined : Math.min(...later);
}
