import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Assessment } from "../assessment.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import { isFromLaterGeneration, isRollingOut, type PipeView } from "../observe/pipe-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { isRolloutSuspended } from "../rollout/rules.ts";
import { assess } from "./assess.ts";

/**
 * Assesses the pipes of a service that must not be resized now, if a rollout may have left them without a pod. Their
 * annotations have all that a rollback needs, so a pipe also comes back while the tier is unknown, for example.
 */
export function strandedPipes(
  snapshot: Snapshot,
  scaling: PipeScalingView | undefined,
  policy: RolloutPolicy,
): readonly Assessment[] {
  if (!scaling) return [];
  return snapshot.pipes.flatMap((pipe) => {
    const { lastRollout } = pipe;
    if (!lastRollout || !mayBeStranded(pipe, scaling)) return [];
    const { size: desired, requestId, outOfMemory: keptOutOfMemory } = lastRollout;
    const context = { ...snapshot, scaling, policy, desired, requestId, keptOutOfMemory };
    return [assess(pipe, snapshot, { ...context, outOfMemory: undefined })];
  });
}

function mayBeStranded(pipe: PipeView, scaling: PipeScalingView): boolean {
  if (!pipe.stopsOldPodsFirst || !isRollingOut(pipe) || isFromLaterGeneration(pipe, scaling)) return false;
  // The end of a commit comes first.
  if (pipe.isPausedForCommit || pipe.inTurn?.ownsPartition) return false;
  return !isRolloutSuspended(pipe, scaling);
}
