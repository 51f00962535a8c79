import type { Fallback, LastRollout } from "../../observe/last-rollout.ts";
import type { PipeView } from "../../observe/pipe-view.ts";
import { type Allotment, isSize } from "../../observe/resources.ts";
import { applied, inPlaceFailureTo } from "../../rollout/annotation.ts";

/** The annotation after a commit. @param fallback why the pods are replaced after all */
export function endedCommit(rollout: LastRollout, fallback: Fallback | undefined): LastRollout {
  const { isCommitting: _, inPlaceStartedAtMs, ...rest } = rollout;
  if (!fallback) return { ...rest, inPlaceStartedAtMs, cameUp: true };
  return { ...rest, inPlaceFailure: inPlaceFailureTo(rollout.size, fallback, rollout.startedAtMs) };
}

/** The annotation of a pipe whose template gets what it had before the commit. @param old in the template then */
export function takenBack(
  { metadata }: PipeView,
  lastRollout: LastRollout,
  old: Allotment,
  fallback: Fallback | undefined,
): LastRollout {
  const { isCommitting: _, ...rest } = lastRollout;
  const inPlaceFailure = fallback && inPlaceFailureTo(lastRollout.size, fallback, lastRollout.startedAtMs);
  // Until Kubernetes has seen a size, it counts as a commit.
  const generation = isSize(old) ? metadata.generation + 1 : 0;
  const present = isSize(old) ? { size: old } : applied(old, lastRollout.size);
  return { ...rest, ...present, generation, attempts: 0, cameUp: true, inPlaceFailure };
}
