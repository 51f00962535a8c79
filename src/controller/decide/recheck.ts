import type { DeploymentView } from "../observe/deployment-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Decision } from "./decision.ts";
import { stepRetryAtMs } from "./failed-step.ts";
import { repeatableAtMs } from "./pipe-actions.ts";
import { orphanResumedAtMs } from "./resume.ts";
import { phaseEndsAtMs, type Timing } from "./rollout-phase.ts";

/**
 * Returns the time at which the decision may change without an event, in milliseconds since 1970: a retry, the timeout
 * of a rollout, the end of a phase that other pipes wait for, the recreation of a PipeScaling, or the end of a pause.
 * `undefined` if only an event can change it.
 */
export function recheckAtMs(
  snapshot: Snapshot,
  { sizing }: Decision,
  { policy }: Pick<Timing, "policy">,
): number | undefined {
  const { nowMs, recreateAtMs, scaling, orphans } = snapshot;
  const failedOf = ({ metadata }: DeploymentView) => snapshot.failedSteps.get(metadata.uid);
  const times = (sizing?.assessments ?? []).map(({ pipe }) => repeatedAtMs(pipe, snapshot));
  times.push(...orphans.map((orphan) => orphanResumedAtMs(orphan, snapshot)));
  // A commit also ends if the Deployment controller does not respond.
  const paused = snapshot.pipes.filter((pipe) => pipe.isPausedByUs && failedOf(pipe)?.type !== "resume");
  times.push(...paused.map(() => nowMs + PAUSED_RECHECK_MS));
  const failedSteps = [...snapshot.pipes, ...orphans].flatMap((pipe) => failedOf(pipe) ?? []);
  times.push(...failedSteps.map((failed) => stepRetryAtMs(failed, snapshot)));
  if (!scaling) times.push(recreateAtMs);
  const window = sizing?.window;
  if (sizing?.holdBack === "window" && window && !window.open) times.push(window.opensAtMs);
  for (const { pipe, phase, recheckAtMs: atMs, state } of sizing?.assessments ?? []) {
    if (atMs !== undefined) times.push(atMs);
    const endsAtMs = phaseEndsAtMs(pipe, phase, { nowMs, policy });
    const isWaitedFor = sizing?.holdBack === "canary" || sizing?.holdBack === "service-limit";
    if (endsAtMs !== undefined && (isWaitedFor || state === "rolling")) times.push(endsAtMs);
  }
  const later = times.filter((atMs) => atMs > nowMs && Number.isFinite(atMs));
  return later.length === 0 ? undefined : Math.min(...later);
}

const PAUSED_RECHECK_MS = 1000;

/** When an adoption or a rollback may be repeated; the time of a resize is in the assessment. */
function repeatedAtMs(pipe: DeploymentView, snapshot: Snapshot): number {
  const { writes, scaling } = snapshot;
  const write = writes.get(pipe.metadata.uid);
  if (!scaling || !write || write.purpose === "resize") return Number.POSITIVE_INFINITY;
  return repeatableAtMs(write, pipe, scaling, snapshot);
}
