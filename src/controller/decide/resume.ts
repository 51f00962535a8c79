import { elapsedMs } from "../../runtime/elapsed.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Action } from "./actions.ts";
import { finishCommits } from "./finish-commit.ts";

/**
 * An orphan may be a pipe of another release of the controller, which has the same field manager and pauses it for at
 * most 30 s. Its commit must not be cut short, because that would be a rollout.
 */
const ORPHAN_PAUSE_MS = 60_000;

/** A Deployment never stays paused because a rescale ended between two steps. */
export function resumeAbandoned(snapshot: Snapshot): Action[] {
  const { scaling, tier, namespace, pipes, orphans, nowMs } = snapshot;
  const isActive =
    scaling && !scaling.isBeingDeleted && !scaling.spec.suspend && tier.ok && namespace !== undefined;
  const abandoned = orphans.filter((pipe) => orphanResumedAtMs(pipe, nowMs) <= nowMs);
  return [
    ...(isActive ? [] : finishCommits(pipes, snapshot)),
    ...abandoned.map((pipe) => ({ type: "resume" as const, pipe })),
  ];
}

/** When an orphan is resumed, in milliseconds since 1970; infinite if the controller did not pause it. */
export function orphanResumedAtMs({ pausedByUsAtMs }: DeploymentView, nowMs: number): number {
  if (pausedByUsAtMs === undefined) return Number.POSITIVE_INFINITY;
  return nowMs - elapsedMs(pausedByUsAtMs, nowMs) + ORPHAN_PAUSE_MS;
}
