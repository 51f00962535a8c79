import { sameSize } from "../../domain/size.ts";
import type { Begin, PipeDecision, Subject, Way } from "../assessment.ts";
import {
  hasAllResources,
  isRollingOut,
  mayReplacePodsOfTemplate,
  type PipeView,
} from "../observe/pipe-view.ts";
import { mayReplacePods } from "../pods.ts";
import {
  dueAtMs,
  errorOf,
  FIELD_CONFLICT,
  failureOf,
  isOfWrite,
  isUsedUp,
  recordOf,
  retriedAt,
} from "../retry.ts";
import { committedRollout } from "../rollout/annotation.ts";
import { failedSearch } from "../rollout/prior-failure.ts";
import { ACCEPTED, dryRunOf, dryRunRecord, ROLLOUT } from "../rollout/way.ts";
import { recordFailure, stalePod } from "./fall-back.ts";
import { inPlaceProblem } from "./problem.ts";
import { isInTime, podsStep } from "./resize-pods.ts";

/** Resizes the running pods. Their template follows when all of them have the size (commit-rules.ts). */
export const IN_PLACE: Way = {
  replacesPods: false,

  problem(subject) {
    const { pipe } = subject;
    if (pipe.replicas === 0) return { reason: "NotSettled", message: "it has no replicas" };
    if (!hasAllResources(pipe))
      return {
        reason: "NotSupported",
        message: "its template lacks a request or the memory limit, and only new pods can get one",
      };
    const problem = inPlaceProblem(subject);
    const isInTheWay = problem?.untilMs !== undefined && mayReplacePods(subject) && isInterrupted(pipe);
    if (!isInTheWay) return problem;
    // The pipe has no pod until its next rollout, so that does not wait for the end of this one.
    const { untilMs: _, ...lasting } = problem;
    return lasting;
  },

  /** Every pipe has a template of its own, so each is tried. A template that has the size already is not written. */
  dryRun(begin) {
    const { pipe, desired } = begin.subject;
    if (sameSize(pipe.size, desired)) return ACCEPTED;
    return dryRunOf(begin, committedRollout(begin.subject), { isCommit: true, checksNodes: false });
  },

  begin({ subject }: Begin) {
    const step = podsStep(subject);
    if (step.type === "resize") return step.actions;
    return step.type === "fail" ? recordFailure(subject, step) : [];
  },
};

/** True while the controller replaces the pods of a pipe whose rollouts stop old pods first, and none is available. */
function isInterrupted(pipe: PipeView): boolean {
  const { stopsOldPodsFirst, rollout, lastRollout } = pipe;
  // Until Kubernetes has seen the last change, the rollout may be complete.
  if (!stopsOldPodsFirst || !rollout.isSeen || rollout.isAnyAvailable) return false;
  const isRolledOut = isRollingOut(pipe) && lastRollout?.inPlaceStartedAtMs === undefined;
  return isRolledOut || mayReplacePodsOfTemplate(pipe);
}

/**
 * Replaces pods that cannot be resized in place although the template has the size already. The template does not
 * change, so the ReplicaSet does, or the revision label of the pods of a StatefulSet.
 */
export const REPLACE_PODS: Way = {
  replacesPods: true,
  /** Without a change of the template, there is no rollback, so if old pods stop first, the new ones must have room. */
  dryRun: (begin) => (begin.subject.pipe.stopsOldPodsFirst ? ROLLOUT.dryRun(begin) : ACCEPTED),

  begin({ subject }: Begin) {
    const { pipe, container, active } = subject;
    const stale = stalePod(subject);
    if (!stale) return [];
    const kept = active.filter((each) => isInTime(each, subject)).map(({ pod }) => pod.metadata.uid);
    return [{ type: "replace-pods", pipe, container, ...stale, kept }];
  },
};

/**
 * Why the pods are not replaced now: the size is refused or has no room, they were replaced a moment ago, the write
 * failed, or it did not help several times. `undefined` if they may be replaced.
 *
 * @param isReturning pods get the size of their template again, which needs no room on another node
 */
export function replacedBefore(subject: Subject, isReturning: boolean): PipeDecision | undefined {
  const tried = dryRunRecord(subject, false);
  // A pod whose resize is in progress or deferred may still get it.
  const isPending =
    isReturning || subject.active.some((each) => each.state === "deferred" || isInTime(each, subject));
  const refused =
    failureOf(tried, dueAtMs(tried, subject.pipe, subject)) ??
    (isPending ? undefined : failedSearch(subject));
  if (refused && (refused.retryAtMs ?? Number.POSITIVE_INFINITY) > subject.nowMs)
    return { state: isOfWrite(refused.reason) ? "retrying" : "failed", failure: refused };
  const record = recordOf(subject, "replace-pods");
  if (!record) return undefined;
  const { attempts, lastAtMs: atMs } = record;
  const repeatableMs = dueAtMs(record, subject.pipe, subject);
  // After a write, Kubernetes has some time to replace the pods.
  const retryAtMs = errorOf(record) ? repeatableMs : Math.max(repeatableMs, atMs + subject.timeouts.commitMs);
  if (retryAtMs <= subject.nowMs) return undefined;
  const failure = failureOf(record, retryAtMs);
  if (failure) return { state: isOfWrite(failure.reason) ? "retrying" : "failed", failure };
  if (isUsedUp(record, subject)) {
    const inVain = { reason: FIELD_CONFLICT, message: IN_VAIN, attempts, atMs } as const;
    return { state: "failed", failure: retriedAt(retryAtMs, inVain) };
  }
  const activity = "its pods are being replaced";
  return { state: "rolling", phase: "resizing", activity, recheckAtMs: retryAtMs };
}

const IN_VAIN =
  "another writer, such as an admission webhook, gives its pods another size whenever they are created: exempt them from it";
