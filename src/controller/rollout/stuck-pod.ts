import { sameSize } from "../../domain/size.ts";
import type { DeletePodAction } from "../actions.ts";
import type { ActivePod, Subject } from "../assessment.ts";
import { isHeld } from "../observe/pipe-view.ts";
import type { PodView } from "../observe/pod-view.ts";
import { isSize, sizeOf } from "../observe/resources.ts";
import type { WriteRecord } from "../observe/write-record.ts";
import { errorOf, repeatableAtMs } from "../retry.ts";

/*
 * A StatefulSet waits for a pod that does not become ready before it replaces any pod, even that one. So a pod with a size
 * that failed would stay after the template has its old size again, until somebody deletes it (kubernetes#67250).
 */

interface Stuck {
  readonly pod: PodView;
  readonly record: WriteRecord | undefined;
  /** When it may be deleted, or deleted again, in milliseconds since 1970. */
  readonly dueAtMs: number;
}

/** Deletes one pod at a time. @returns nothing while that has to wait */
export function deleteStuckPod(subject: Subject): readonly DeletePodAction[] {
  const stuck = stuckPod(subject);
  if (!stuck || stuck.dueAtMs > subject.nowMs) return [];
  return [{ type: "delete-pod", pipe: subject.pipe, pod: stuck.pod }];
}

/** When the stuck pod may be deleted, in milliseconds since 1970; `undefined` if no pod is stuck. */
export function deletionDueAtMs(subject: Subject): number | undefined {
  return stuckPod(subject)?.dueAtMs;
}

/** For people: a sentence about a pod that could not be deleted. */
export function stuckRemark(subject: Subject): string | undefined {
  const { pod, record } = stuckPod(subject) ?? {};
  const error = errorOf(record);
  if (!pod || !error || error.isConflict) return undefined;
  const { name } = pod.metadata;
  return `The pod ${name} still has the size that failed, because it could not be deleted: ${error.message}. Delete it, so that it gets its old size.`;
}

function stuckPod(subject: Subject): Stuck | undefined {
  const { pipe, pods, active, writes, timeouts } = subject;
  const { inTurn, lastRollout, rollout } = pipe;
  // Only what the controller wrote itself is its to clean up, and only a template that is seen shows which pods are old.
  if (!inTurn || !lastRollout || lastRollout.generation === 0 || !rollout.isSeen) return undefined;
  // All pods end.
  if (pipe.replicas === 0) return undefined;
  if (pods.some(({ isTerminating }) => isTerminating)) return undefined;
  const found = active.find(
    (each) =>
      !each.pod.isReady &&
      each.pod.templateHash !== inTurn.templateHash &&
      !isHeld(pipe, each.pod) &&
      hasFailedSize(each, subject),
  );
  if (!found) return undefined;
  const { uid, generation } = found.pod.metadata;
  const record = writes.get(uid, "delete-pod");
  const repeatableMs = repeatableAtMs(record, generation, subject);
  // The watch soon shows that it ends.
  const isDone = record?.outcome.type === "done";
  const dueAtMs = isDone ? Math.max(repeatableMs, record.lastAtMs + timeouts.rescheduleMs) : repeatableMs;
  return { pod: found.pod, record, dueAtMs };
}

/**
 * A size that was rolled out and superseded. It may be older than the last rollout, for example if that one made no progress
 * because of the pod. A pod with the last good size is not ready for a reason of its owner.
 */
function hasFailedSize({ own }: ActivePod, { pipe }: Subject): boolean {
  const size = own && sizeOf(own);
  const { lastGoodSize } = pipe.lastRollout ?? {};
  const isGood = isSize(lastGoodSize) && sameSize(size, lastGoodSize);
  return size !== undefined && !isGood && !sameSize(size, pipe.size);
}
