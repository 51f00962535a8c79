import type { Assessment } from "../assessment.ts";
import { commitStep } from "../in-place/commit-rules.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { WritePurpose } from "../observe/write-record.ts";
import { dueAtMs } from "../retry.ts";
import { creatableAtMs, orphanResumedAtMs } from "./decide.ts";
import type { Decision } from "./decision.ts";

/** Writes that no decision waits for. */
const SILENT: readonly WritePurpose[] = ["adopt", "roll-back", "dry-run", "dry-run-commit", "replace-pods"];

/** A Deployment that left the caches is read again after this time. */
const DEPARTED_MS = 500;

/**
 * Returns the time at which the decision may change without an event, in milliseconds since 1970: a retry, a timeout,
 * the end of a phase that other pipes wait for, the recreation of a PipeScaling, the end of a pause, or the end of a boost.
 * Infinite if only an event can change it.
 */
export function recheckAtMs(snapshot: Snapshot, { sizing }: Decision): number {
  const { nowMs, recreation, scaling, orphans, departed, pipes } = snapshot;
  const { waitReason, window, assessments = [] } = sizing ?? {};
  const paused = pipes.filter(({ isPausedForCommit }) => isPausedForCommit);
  const isWaitedFor = waitReason === "canary" || waitReason === "service-limit";
  const times = [
    ...assessments.flatMap((each) => timesOf(each, isWaitedFor)),
    ...paused.map((pipe) => commitStep(pipe, snapshot).recheckAtMs),
    ...orphans.map((orphan) => orphanResumedAtMs(orphan, snapshot)),
    ...departed.map(() => nowMs + DEPARTED_MS),
    ...(sizing?.boost ? [sizing.boost.untilMs] : []),
    ...(scaling ? [] : [recreation.atMs, creatableAtMs(snapshot)]),
    ...(waitReason === "window" && window && !window.open ? [window.opensAtMs] : []),
  ];
  return Math.min(...times.filter((atMs) => atMs > nowMs));
}

function timesOf(assessment: Assessment, isWaitedFor: boolean): readonly number[] {
  const { pipe, state, subject, phaseEndsAtMs } = assessment;
  const endsAtMs = isWaitedFor || state === "rolling" ? phaseEndsAtMs : undefined;
  const retries = SILENT.map((purpose) => dueAtMs(subject.writes.get(pipe.metadata.uid, purpose), subject));
  return [assessment.recheckAtMs, endsAtMs, ...retries].filter((each) => each !== undefined);
}
