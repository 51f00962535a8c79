import { resourcesFor } from "../observe/resources.ts";
import { hasResources } from "./pod-view.ts";
import type { ReplicaSetView } from "./replica-set-view.ts";
import type { CommitStep, InPlaceContext, InPlaceStep } from "./steps.ts";
import type { Fallback, InPlaceView } from "./view.ts";

/** The Deployment controller answers a commit within 200 ms, but it may be restarting. */
export const COMMIT_MS = 30_000;

/** The first step of a commit: all pods have the size, so the template follows. */
export function beginCommit({ view, container, target }: InPlaceContext): InPlaceStep {
  const [current] = inUse(view);
  const duplicate = view.replicaSets.find(
    (each) =>
      current !== undefined &&
      each.pods === 0 &&
      each.createdAtS <= current.createdAtS &&
      isSameTemplate(each, current, container) &&
      hasResources(each.resources.get(container), target),
  );
  return duplicate ? { type: "delete-replica-set", replicaSet: duplicate } : { type: "pause" };
}

/** The Deployment is paused by us: its ReplicaSet follows its template, and then it is resumed. */
export function commitStep({
  pipe,
  container,
  view,
}: Pick<InPlaceContext, "pipe" | "container" | "view">): CommitStep {
  const endsAtMs = (view.pausedAtMs ?? view.nowMs) + COMMIT_MS;
  // If the Deployment controller does not respond, or the owner changed the template, a rollout brings the size.
  if (!pipe.size || endsAtMs <= view.nowMs) return { type: "resume" };
  const wait: CommitStep = { type: "wait", untilMs: endsAtMs };
  if (!pipe.rollout.isSeen) return wait;
  const [current, ...others] = inUse(view);
  if (!current || others.length > 0) return { type: "resume" };
  // Another size may be desired by now.
  const resources = resourcesFor(pipe.size, pipe.cpuLimitFollows);
  if (!hasResources(current.resources.get(container), resources)) {
    return { type: "update-replica-set", replicaSet: current, resources };
  }
  return pipe.rollout.isUpdated ? { type: "resume" } : wait;
}

/** Only a Deployment whose pods are all of one ReplicaSet can keep that ReplicaSet. */
export function unsettled({ pipe, view }: InPlaceContext): Fallback | undefined {
  const reason = "NotSettled";
  if (pipe.isPaused) return { reason, message: "the Deployment is paused by its owner" };
  if (!pipe.rollout.isSeen || !pipe.rollout.isComplete)
    return { reason, message: "a rollout of the Deployment has not completed" };
  if (inUse(view).length !== 1) return { reason, message: "its pods are of several ReplicaSets" };
  return undefined;
}

/** ReplicaSets that have pods. */
export function inUse({ replicaSets }: InPlaceView): readonly ReplicaSetView[] {
  return replicaSets.filter(({ pods }) => pods > 0);
}

/** Kubernetes compares whole templates, the resources of other containers included. */
function isSameTemplate(a: ReplicaSetView, b: ReplicaSetView, container: string): boolean {
  if (a.templateHash !== b.templateHash) return false;
  const others = ({ resources }: ReplicaSetView) =>
    JSON.stringify([...resources].filter(([name]) => name !== container));
  return others(a) === others(b);
}
