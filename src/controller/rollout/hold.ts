import type { PipeDecision, Subject } from "../assessment.ts";
import type { PipeView } from "../observe/pipe-view.ts";

const PAUSED = "its owner paused the Deployment: resume it";

/** Why a change of the template replaces no pod, or not all, for people: the end of a sentence. */
export function heldBy({ inTurn }: Pick<PipeView, "inTurn">): string {
  return inTurn?.hold?.message ?? PAUSED;
}

/** The owner keeps all pods that do not have the size from rollouts. The owner chose this, so it is no alarm. */
export function heldByOwner({ pipe }: Pick<Subject, "pipe">): PipeDecision | undefined {
  const { isPaused, rollout, inTurn } = pipe;
  if (!isPaused && !(inTurn?.hold && rollout.isComplete)) return undefined;
  return { state: "paused", activity: heldBy(pipe), ...(inTurn ? { waitsForOwner: true } : {}) };
}

/** With the strategy OnDelete, a changed template would replace a pod whenever one ends, and nothing would prove the size. */
export function leftToOwner({ pipe }: Pick<Subject, "pipe">): PipeDecision | undefined {
  const { inTurn } = pipe;
  if (!inTurn?.hold?.isOnDelete) return undefined;
  return { state: "paused", activity: heldBy(pipe), waitsForOwner: true };
}
