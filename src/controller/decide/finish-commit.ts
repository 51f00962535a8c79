import { commitStep } from "../in-place/commit.ts";
import type { InPlaceView } from "../in-place/view.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Timeouts } from "../timeouts.ts";
import type { Action } from "./actions.ts";
import { resumeAction } from "./in-place.ts";

/**
 * Finishes the commits of pipes that cannot be resized now, for example because their service is suspended. If they
 * were resumed in the middle of a commit, a rollout would begin.
 */
export function finishCommits(
  pipes: readonly DeploymentView[],
  { inPlace, timeouts }: Pick<Snapshot, "inPlace" | "timeouts">,
): readonly Action[] {
  const paused = pipes.filter(({ isPausedByUs }) => isPausedByUs);
  return paused.flatMap((pipe) => finishCommit(pipe, inPlace.get(pipe.metadata.uid), timeouts));
}

function finishCommit(
  pipe: DeploymentView,
  view: InPlaceView | undefined,
  timeouts: Timeouts,
): readonly Action[] {
  const { container, lastRollout } = pipe;
  // A webhook may have removed the annotation of the last rollout.
  const size = lastRollout?.size ?? pipe.size;
  if ("problem" in container || !size || view?.fallback) return [{ type: "resume", pipe }];
  const { name } = container;
  if (!view) return [{ type: "begin-in-place", pipe, container: name, size }];
  if (!view.isReady) return [];
  const step = commitStep({ pipe, container: name, view, timeouts });
  if (step.type === "resume") return [resumeAction(pipe, step, view.size)];
  if (step.type === "wait") return [];
  if (step.type === "read-template") return [{ type: "read-template", pipe }];
  return [{ ...step, pipe, container: name, size: view.size }];
}
