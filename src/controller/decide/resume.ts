import { elapsedMs } from "../../runtime/elapsed.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Action } from "./actions.ts";
import { finishCommits } from "./finish-commit.ts";

/** A Deployment never stays paused because a rescale ended between two steps. */
export function resumeAbandoned(snapshot: Snapshot): Action[] {
  const { scaling, tier, namespace, pipes, orphans, nowMs } = snapshot;
  const isActive =
    scaling && !scaling.isBeingDeleted && !scaling.spec.suspend && tier.ok && namespace !== undefined;
  const abandoned = orphans.filter((pipe) => orphanResumedAtMs(pipe, snapshot) <= nowMs);
  return [
    ...(isActive ? [] : finishCommits(pipes, snapshot)),
    ...abandoned.map((pipe) => ({ type: "resume" as const, pipe })),
  ];
}

/** When an orphan is resumed, in milliseconds since 1970; infinite if the controller did not pause it. */
export function orphanResumedAtMs(
  { pausedByUsAtMs }: DeploymentView,
  { nowMs, timeouts }: Pick<Snapshot, "nowMs" | "timeouts">,
): number {
  if (pausedByUsAtMs === undefined) return Number.POSITIVE_INFINITY;
  return nowMs - elapsedMs(pausedByUsAtMs, nowMs) + timeouts.orphanPauseMs;
}
