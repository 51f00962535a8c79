import { sameSize } from "../../domain/size.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { Action } from "../actions.ts";
import type { ActivePod, Failed, PipeDecision, Subject } from "../assessment.ts";
import type { Fallback } from "../observe/last-rollout.ts";
import type { Snapshot } from "../observe/observe.ts";
import {
  hasAllResources,
  isHeld,
  isOfTemplate,
  isPausedForAll,
  type PipeView,
  templateResources,
} from "../observe/pipe-view.ts";
import { hasResources, memoryLimitOf, resourcesFor } from "../observe/resources.ts";
import { isOpen, type WriteRecord } from "../observe/write-record.ts";
import { allPodsHaveSize, areOfOneTemplate, begunAtMs, mayReplacePods } from "../pods.ts";
import {
  dueAtMs,
  errorOf,
  failureOf,
  lastErrorOf,
  recordOf,
  retryAtMs,
  retryDelayMs,
  type Versioned,
} from "../retry.ts";
import { committedRollout } from "../rollout/annotation.ts";
import { heldBy } from "../rollout/rules.ts";
import { fallsBack, isLasting } from "./fall-back.ts";
import { failedBefore, refusalOf } from "./problem.ts";
import { restarted } from "./resize-pods.ts";

type CommitContext = Pick<Snapshot, "scaling" | "writes" | "nowMs" | "timeouts" | "strategy">;

export interface CommitStep {
  readonly actions: readonly Action[];
  readonly recheckAtMs: number;
  /** When the failed write is tried again, if not at `recheckAtMs`. */
  readonly retryAtMs?: number;
  /** The last attempt, if it failed. */
  readonly failed: WriteRecord | undefined;
}

/**
 * The next write of a commit in progress. It does not depend on the desired size, so a commit ends whatever is wanted
 * now. The workload shows what is left to do, so the next leader can go on.
 */
export function commitStep(pipe: PipeView, context: CommitContext): CommitStep {
  const { nowMs, timeouts } = context;
  const { container, size, rollout } = pipe;
  const { resumption, update, outdated, failed } = recordsOf(pipe, context);
  const pausedAtMs = Math.min(pipe.pausedForCommitAtMs ?? nowMs, nowMs);
  const updatedAtMs = doneAtMs(update, pipe);
  // For a StatefulSet, the time starts again when its pods have their labels.
  const endsAtMs = Math.max(pausedAtMs, pipe.inTurn ? updatedAtMs : 0) + timeouts.commitMs;
  const isOverdue = endsAtMs <= nowMs;
  const wait = (recheckAtMs: number): CommitStep => ({ actions: [], recheckAtMs, failed });
  const attempt = (record: WriteRecord | undefined, object: Versioned, action: Action): CommitStep => {
    const dueMs = errorOf(record) ? dueAtMs(record, object, context) : 0;
    // When the time of the commit is over, it is ended, even if the next attempt was due later.
    if (dueMs > nowMs) return wait(isOverdue ? dueMs : Math.min(dueMs, endsAtMs));
    return { actions: [action], recheckAtMs: endsAtMs, failed };
  };
  // So that the pause ends soon, an attempt after a refusal is due as early as after a change of the workload.
  const end = (action: Action) => attempt(resumption, { metadata: { generation: Number.NaN } }, action);
  // A template must not get its old size while its ReplicaSet may still get the new one, or the other way round.
  if ([resumption, update, outdated].some(isOpen)) return wait(Number.POSITIVE_INFINITY);
  // After an outdated write, the report of Kubernetes may be older than the write, so the next step depends on a read.
  // If pods are wanted and none exist, the template has not followed them: the only pod may just have been deleted.
  const isFollowed = rollout.isSeen && rollout.isUpdated && !isOfCommit(outdated, pausedAtMs);
  if ("problem" in container || !size || isFollowed) return end({ type: "resume", pipe });
  const refused = refusedUpdate(update, pausedAtMs);
  const isRepeatable = pipe.inTurn !== undefined && dueAtMs(update, pipe, context) <= nowMs;
  const fallback = isRepeatable ? undefined : refused;
  const next = {
    type: "continue-commit",
    pipe,
    container: container.name,
    mayReplacePods: mayReplacePods(context),
  } as const;
  if (isOverdue || fallback) {
    const idleMs = idleUntilMs(resumption, pipe, context);
    if (idleMs <= nowMs) return end({ ...next, isOverdue: true, fallback });
    // People see when the refused write is repeated, not each attempt to end the commit.
    return { ...wait(idleMs), ...(refused && { retryAtMs: dueAtMs(update, pipe, context) }) };
  }
  if (!rollout.isSeen) return wait(endsAtMs);
  return updatedAtMs > 0 ? wait(endsAtMs) : attempt(update, pipe, { ...next, isOverdue });
}

/** The records of a commit of another size say nothing about this one. */
function recordsOf(pipe: PipeView, { writes }: CommitContext) {
  const about = { pipe, writes, desired: pipe.size };
  const [resumption, update] = [recordOf(about, "resume"), recordOf(about, "continue-commit")];
  const failed = [resumption, update].find((record) => lastErrorOf(record) !== undefined);
  // If the owner has changed the size since the last write, its ReplicaSet or pods may still get the size before that.
  const outdated = update ? undefined : writes.get(pipe.metadata.uid, "continue-commit");
  return { resumption, update, outdated, failed };
}

/** When a write to the present generation of a workload succeeded, in milliseconds since 1970; 0 if none did. */
function doneAtMs(record: WriteRecord | undefined, { metadata }: PipeView): number {
  if (record?.outcome.type !== "done" || record.outcome.generation !== metadata.generation) return 0;
  return record.lastAtMs;
}

/**
 * The time before which the end of the commit is not tried again, in milliseconds since 1970; 0 if it may be tried now.
 * If the last attempt succeeded and the workload is still held, nothing could be written, and that does not change at
 * once.
 */
function idleUntilMs(resumption: WriteRecord | undefined, pipe: PipeView, context: CommitContext): number {
  const triedAtMs = doneAtMs(resumption, pipe);
  const { timeouts } = context;
  const delayMs = retryDelayMs("WriteFailed", resumption?.attempts ?? 0, timeouts);
  return triedAtMs > 0 ? retryAtMs(triedAtMs, Math.min(timeouts.commitMs, delayMs), context) : 0;
}

/**
 * Why the last update would be refused again; `undefined` if it was not refused. A write to a ReplicaSet that must not
 * be changed is not repeated. The label of a pod may be accepted later, so it is written again after a delay.
 */
function refusedUpdate(update: WriteRecord | undefined, pausedAtMs: number): Fallback | undefined {
  if (!isOfCommit(update, pausedAtMs)) return undefined;
  const { reason, message = "" } = errorOf(update) ?? {};
  return reason === "Refused" || reason === "Forbidden" ? { reason, message } : undefined;
}

/** Returns true for a write that was made since the pause, whose time has whole seconds. */
function isOfCommit(update: WriteRecord | undefined, pausedAtMs: number): boolean {
  return update !== undefined && update.lastAtMs > pausedAtMs - 1000;
}

const FOLLOWS = "its template follows its pods";

export function commitInFlight(subject: Subject): PipeDecision | undefined {
  const { pipe, desired, nowMs, timeouts } = subject;
  if (!pipe.isPausedForCommit) return commitEnding(subject);
  const { actions, recheckAtMs, retryAtMs = recheckAtMs, failed } = commitStep(pipe, subject);
  const failure = failureOf(failed, retryAtMs);
  const decision = { activity: FOLLOWS, failure, next: { type: "continue", actions }, recheckAtMs } as const;
  // The pods do not change any more, so the pipe counts against no limit of rollouts.
  if (sameSize(pipe.size, desired) && allPodsHaveSize(subject))
    return { ...decision, state: "resized", phase: "settled" };
  const isStuck = elapsedMs(pipe.pausedForCommitAtMs ?? nowMs, nowMs) >= timeouts.stuckCommitMs;
  return { ...decision, state: failed ? "retrying" : "rolling", phase: isStuck ? "overdue" : "resizing" };
}

/**
 * The watch may show the restored template before the response to the write that restored it. Then no other writer has
 * changed the size.
 */
function commitEnding(subject: Subject): PipeDecision | undefined {
  const { pipe, desired } = subject;
  const resumption = recordOf(subject, "resume");
  if (sameSize(pipe.size, desired) || !isOpen(resumption) || !allPodsHaveSize(subject)) return undefined;
  const failed = [resumption, recordOf(subject, "continue-commit")].find(lastErrorOf);
  const failure = failureOf(failed);
  return {
    state: "resized",
    phase: "settled",
    activity: FOLLOWS,
    failure: failure && { ...failure, isRepeated: true },
  };
}

/** All pods have the size, so the template follows as soon as the limit of commits allows it. */
export function templateFollows(subject: Subject): PipeDecision | undefined {
  const { pipe, container, active, nowMs } = subject;
  if (!hasAllResources(pipe) || active.length === 0 || !allPodsHaveSize(subject) || failedBefore(subject))
    return undefined;
  const restart = restartedBeforeCommit(subject);
  if (restart) return fallsBack(subject, restart);
  const resized = { state: "resized", phase: "settled", activity: FOLLOWS } as const;
  // For example, the pipe moved to another service. The admission policies then refuse a change of its ReplicaSet.
  const { templateProblem } = pipe;
  if (templateProblem && !mayReplacePods(subject))
    return { ...resized, activity: templateProblem.message, hindrance: templateProblem };
  if (templateProblem) return fallsBack(subject, templateProblem);
  const record = recordOf(subject, "commit");
  const refusal = refusalOf(record, subject);
  if (refusal && (mayReplacePods(subject) || isLasting(refusal))) return fallsBack(subject, refusal);
  if (isPausedForAll(pipe)) return { ...resized, activity: heldBy(pipe) };
  if (isOpen(record)) return { ...resized, failure: failureOf(record) };
  // The workload is not held again before the next write to its ReplicaSet or pods is due.
  const failed = [record, recordOf(subject, "continue-commit")].filter(
    (each) => each?.outcome.type === "failed",
  );
  const dueMs = Math.max(0, ...failed.map((each) => dueAtMs(each, pipe, subject)));
  const decision = { ...resized, failure: failureOf(record, dueMs) };
  if (dueMs > nowMs) return { ...decision, recheckAtMs: dueMs };
  // Otherwise, Kubernetes has not seen a change of the owner yet, or there are pods of another template, or may be.
  const isSettled =
    pipe.rollout.isSeen &&
    pipe.rollout.isUpdated &&
    areOfOneTemplate(subject) &&
    !wouldCreateEarlierPod(subject);
  // No time is known for the next attempt.
  if (!isSettled) return { ...decision, failure: failureOf(record), ...unsettled(subject) };
  const action = { type: "commit", pipe, container, rollout: committedRollout(subject) } as const;
  return { ...decision, next: { type: "commit", action } };
}

/**
 * Until the template follows the pods, a restart of a container is a reason for a rollout. When the first write of the
 * commit was tried, all pods ran the size, so after that, only a kill because of less memory is.
 */
function restartedBeforeCommit(subject: Subject): Failed | undefined {
  const record = recordOf(subject, "commit");
  if (isCommitUndone(subject)) return undefined;
  if (!record) return restarted(subject);
  if (record.outcome.type !== "failed" || record.outcome.error.isUndone) return undefined;
  return restarted({ ...subject, active: subject.active.filter((each) => isKilledWithLess(each, subject)) });
}

function isKilledWithLess(each: ActivePod, subject: Subject): boolean {
  const { own } = each;
  const isSmaller = memoryLimitOf(templateResources(subject.pipe)) > memoryLimitOf(subject.target);
  return isSmaller && own?.isOomKilled === true && own.restartedAtMs >= begunAtMs(each, subject);
}

interface Committed extends Pick<Subject, "pipe" | "serviceId" | "desired"> {
  readonly active: readonly Pick<ActivePod, "pod" | "own">[];
}

/**
 * True if all pods have the size, and the commit with which their template followed was undone and is repeated. Until
 * it succeeds, their restarts are no reason for a rollout.
 */
export function isCommitUndone({ pipe, serviceId, desired, active }: Committed): boolean {
  const { lastRollout, cpuLimitFollows } = pipe;
  // A pipe that moved may still have the annotation for its earlier service.
  if (lastRollout?.inPlaceStartedAtMs === undefined || lastRollout.serviceId !== serviceId) return false;
  const { attempts, startedAtMs } = lastRollout;
  const resources = resourcesFor(desired, cpuLimitFollows);
  // A pod that was resized after the commit began may have been killed with another size.
  const isOfCommit = ({ pod, own }: Committed["active"][number]) =>
    hasResources(own?.resources, resources) && (pod.resizedAtMs ?? 0) <= startedAtMs;
  return attempts === 0 && active.length > 0 && active.every(isOfCommit);
}

/**
 * True if Kubernetes would create a pod during the hold with an earlier template than the other pods have: the last one
 * with which all pods were ready at once. Pods that ran out of memory may never have been ready with the present one.
 */
function wouldCreateEarlierPod({ pipe: { inTurn }, outOfMemory }: Subject): boolean {
  const { needsHold = false, isOfOneRevision = true } = inTurn ?? {};
  return needsHold && !isOfOneRevision && !outOfMemory;
}

function unsettled(subject: Subject): Pick<PipeDecision, "activity" | "waitsForOwner"> {
  const { pipe, pods, active } = subject;
  // Only the owner can end this: Kubernetes does not replace a pod of an earlier template that is held.
  const isKept =
    pipe.rollout.isSeen && active.some(({ pod }) => isHeld(pipe, pod) && !isOfTemplate(pipe, pod));
  if (isKept) return { activity: heldBy(pipe), waitsForOwner: true };
  const ending = pipe.inTurn && pods.find(({ isTerminating }) => isTerminating);
  if (ending) return { activity: `its template follows when its pod ${ending.metadata.name} has ended` };
  const isMissing = pipe.inTurn && pipe.rollout.isSeen && pipe.rollout.replicas < pipe.replicas;
  const awaited = isMissing ? active.find(({ pod }) => !pod.isReady) : undefined;
  if (awaited)
    return {
      activity: `its template follows when its pod ${awaited.pod.metadata.name} is ready, and all others exist`,
    };
  const isUnready = pipe.rollout.isUpdated && wouldCreateEarlierPod(subject);
  return {
    activity: `its template follows when ${isUnready ? "all of its pods are ready" : `its ${pipe.kind} is settled`}`,
  };
}
