import { resourcesFor } from "../observe/resources.ts";
import { hasResources } from "./pod-view.ts";
import type { ReplicaSetView } from "./replica-set-view.ts";
import type { CommitStep, InPlaceContext, InPlaceStep } from "./steps.ts";
import { isSameTemplate } from "./template-view.ts";
import type { Fallback, InPlaceView } from "./view.ts";

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
export function commitStep(context: CommitContext): CommitStep {
  const { pipe, container, view, timeouts } = context;
  // The owner removed the size, which is a change of the template, too.
  if (!pipe.size) return { type: "resume" };
  const [current, ...others] = inUse(view);
  // Another size may be desired by now.
  const resources = resourcesFor(pipe.size, pipe.cpuLimitFollows);
  const isUpdated = current && hasResources(current.resources.get(container), resources);
  const endsAtMs = (view.pausedAtMs ?? view.nowMs) + timeouts.commitMs;
  // A Deployment controller that responds later finds the template in the ReplicaSet, and replaces no pod.
  if (endsAtMs <= view.nowMs) return !current || isUpdated ? { type: "resume" } : timeout(context, current);
  const changed = changedTemplate(context, current);
  if (changed) return changed;
  const wait: CommitStep = { type: "wait", untilMs: endsAtMs };
  if (!pipe.rollout.isSeen) return wait;
  if (!current) return { type: "resume" };
  if (others.length > 0) return rollout("NotSettled", SEVERAL_REPLICA_SETS);
  if (!isUpdated) return { type: "update-replica-set", replicaSet: current, resources };
  return pipe.rollout.isUpdated ? { type: "resume" } : wait;
}

type CommitContext = Pick<InPlaceContext, "pipe" | "container" | "view" | "timeouts">;

const TEMPLATE_CHANGED = "its owner changed the pod template meanwhile";
const SEVERAL_REPLICA_SETS = "its pods are of several ReplicaSets";

/** A template that its owner changed starts a rollout, so there is nothing to wait for. */
function changedTemplate(
  { pipe: { metadata, lastRollout }, container, view }: CommitContext,
  current: ReplicaSetView | undefined,
): CommitStep | undefined {
  const { generation } = metadata;
  if (lastRollout?.generation === generation) return undefined;
  if (!view.template || view.template.generation < generation) return { type: "read-template" };
  const isSame = !current || isSameTemplate(view.template, current, container);
  return isSame ? undefined : rollout("NotSettled", TEMPLATE_CHANGED);
}

function timeout({ pipe, timeouts }: CommitContext, { metadata }: ReplicaSetView): CommitStep {
  const within = `within ${timeouts.commitMs / 1000} s`;
  const message = pipe.rollout.isSeen
    ? `ReplicaSet ${metadata.name}: the API server has not changed it ${within}`
    : `the Deployment controller has not responded ${within}`;
  return rollout("CommitTimeout", message);
}

/** A rollout brings the size. */
function rollout(reason: Fallback["reason"], message: string): CommitStep {
  return { type: "resume", fallback: { reason, message } };
}

/** Only a Deployment whose pods are all of one ReplicaSet can keep that ReplicaSet. */
export function unsettled({ pipe, view }: InPlaceContext): Fallback | undefined {
  const reason = "NotSettled";
  if (pipe.isPaused) return { reason, message: "the Deployment is paused by its owner" };
  if (!pipe.rollout.isSeen || !pipe.rollout.isComplete)
    return { reason, message: "a rollout of the Deployment has not completed" };
  if (inUse(view).length !== 1) return { reason, message: SEVERAL_REPLICA_SETS };
  return undefined;
}

/** ReplicaSets that have pods. */
export function inUse({ replicaSets }: InPlaceView): readonly ReplicaSetView[] {
  return replicaSets.filter(({ pods }) => pods > 0);
}
