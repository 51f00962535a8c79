import type { Fallback } from "../observe/last-rollout.ts";
import type { PipeView } from "../observe/pipe-view.ts";

/*
 * The template of a StatefulSet follows its pods (docs/explanation/in-place.md): set the template and hold the pods, give
 * them the label of the new revision, release them. This decides one step from what was read just before it.
 */

/** The pods of a StatefulSet that do not end. */
export interface HeldPods<Pod> {
  readonly pods: readonly Pod[];
  /** The template of each, by the label that Kubernetes compares. */
  readonly revisionOf: (pod: Pod) => string | undefined;
  /** The revision that pods had before, if the StatefulSet shows it. */
  readonly currentRevision: string | undefined;
  /** Kubernetes has seen the template of the commit, though maybe not a later change of the StatefulSet. */
  readonly isTemplateSeen: boolean;
}

export interface CommitState {
  /** The commit took too long, or a write was refused. */
  readonly isOverdue: boolean;
  readonly canLabel: boolean;
  /** Why labels would be refused again. */
  readonly refused?: Fallback | undefined;
  /** Pods may be replaced if nothing else helps. */
  readonly mayReplacePods: boolean;
  /** All pods got their labels so long ago that Kubernetes has seen them, whatever it counts. */
  readonly isLongLabeled: boolean;
}

export type HeldStep<Pod> =
  /** Give these pods the label of the newest revision. Without any, the time of the labels begins now. */
  | { readonly type: "label"; readonly pods: readonly Pod[]; readonly revision: string }
  | { readonly type: "wait" }
  /** @param fallback why pods are replaced then; absent if none are */
  | { readonly type: "release"; readonly fallback?: Fallback | undefined }
  /** The template gets its old size again, so that no pod is replaced. */
  | { readonly type: "take-back" };

export function heldStep<Pod>(pipe: HeldPipe, facts: HeldPods<Pod>, state: CommitState): HeldStep<Pod> {
  const { rollout, inTurn, lastRollout } = pipe;
  const { pods, revisionOf, currentRevision, isTemplateSeen } = facts;
  const { isOverdue, refused, mayReplacePods } = state;
  const { template, templateHash: revision = "", hold } = inTurn ?? {};
  // With the label of the newest revision, a pod of another template would never be replaced.
  if (lastRollout?.template !== template) return { type: "release", fallback: CHANGED };
  const next = rollout.isSeen ? stepToRevision(revision, pipe, facts, state) : undefined;
  if (next) return next;
  if (!isOverdue) return { type: "wait" };
  // Nothing replaces its pods, so the template can stay. Without its label, a pod is replaced after a change of the strategy.
  if (hold?.isOnDelete && refused) return { type: "release" };
  // Kubernetes makes the new revision the current one when all pods have it, even while they are held.
  const isLabeled = isTemplateSeen && pods.some((pod) => revisionOf(pod) === revision);
  // The revision of the old template is the one that all pods still have.
  if (!isLabeled && pods.every((pod) => revisionOf(pod) === currentRevision)) return { type: "take-back" };
  if (!rollout.isSeen || !refused || !mayReplacePods) return { type: "wait" };
  return { type: "release", fallback: refused };
}

type HeldPipe = Pick<PipeView, "rollout" | "inTurn" | "lastRollout">;

/** @returns `undefined` if pods may not get the label */
function stepToRevision<Pod>(
  revision: string,
  { rollout }: HeldPipe,
  { pods, revisionOf }: HeldPods<Pod>,
  { canLabel, isLongLabeled }: CommitState,
): HeldStep<Pod> | undefined {
  const outdated = pods.filter((pod) => revisionOf(pod) !== revision);
  if (outdated.length > 0) return canLabel ? { type: "label", pods: outdated, revision } : undefined;
  // Kubernetes replaces a pod whose label it has not seen yet: it watches pods and StatefulSets apart from each other.
  return rollout.isUpdated || isLongLabeled ? { type: "release" } : { type: "label", pods: [], revision };
}

const CHANGED: Fallback = {
  reason: "NotSettled",
  message: "its owner changed the pod template meanwhile",
};
