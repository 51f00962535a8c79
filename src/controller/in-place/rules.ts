import { sameSize } from "../../domain/size.ts";
import type { Begin, PipeDecision, PodsStep, Subject, Way } from "../assessment.ts";
import { hasAllResources, isHeld, isOfTemplate } from "../observe/pipe-view.ts";
import { isRunning } from "../observe/pod-view.ts";
import {
  allPodsHaveSize,
  areUpdated,
  hasPodWriteInFlight,
  mayReplacePods,
  mayResizePods,
  seesAllPods,
} from "../pods.ts";
import { dueAtMs, failureOf } from "../retry.ts";
import { heldBy } from "../rollout/rules.ts";
import { standingFailure } from "./drift.ts";
import { fallsBack, isFollowedByRollout, podsToReturn, waitsInPlace } from "./fall-back.ts";
import { failedBefore, hasCompleted } from "./problem.ts";
import { podsStep, refusedSize } from "./resize-pods.ts";
import { IN_PLACE, REPLACE_PODS, replacedBefore } from "./way.ts";

/** The template has the size, and a pod does not: it must be resized, or replaced without a change of the template. */
export function podsFollow(subject: Subject): PipeDecision | undefined {
  const { pipe, active } = subject;
  if (allPodsHaveSize(subject) || isLeftToRollouts(subject)) return undefined;
  // A pod that another writer resized is repaired in place, whatever failed before.
  const failed = standingFailure(subject);
  const isInProgress = active.some(
    ({ state, record }) => state !== "done" && (state !== "unchanged" || record !== undefined),
  );
  if (!failed && isInProgress) return sizeRefused(subject) ?? inProgress(podsStep(subject), subject);
  if (!pipe.rollout.isSeen || !isStable(subject)) return undefined;
  if (active.every(({ state }) => state === "done")) return undefined;
  if (failed && !mayReplacePods(subject)) return waitsInPlace(subject, failed);
  const step = podsStep(subject);
  if (failed) {
    const returning = returned(subject, step);
    const before = replacedBefore(subject, returning !== undefined);
    return before ?? returning ?? keptByOwner(subject) ?? waitsFor(REPLACE_PODS, failed);
  }
  if (step.type === "fail") return fallsBack(subject, step);
  if (step.type === "conflict") return { state: "failed", failure: step.failure };
  return { ...waitsFor(IN_PLACE), failure: step.failure, ...(step.type === "wait" ? untilOf(step) : {}) };
}

function untilOf({ untilMs: recheckAtMs, because }: Extract<PodsStep, { type: "wait" }>) {
  return because === undefined ? { recheckAtMs } : { recheckAtMs, activity: because };
}

/**
 * A container that crashes because of its size is never available, so only pods that were not resized have to be. In a
 * StatefulSet, a pod may have been created while another one was not ready.
 */
function isStable(subject: Subject): boolean {
  const { pipe, active } = subject;
  const areOurs = active.every(
    ({ state, pod }) =>
      state === "done" || pod.resizedAtMs !== undefined || (hasCompleted(pipe) && isRunning(pod)),
  );
  return pipe.rollout.isComplete || (areOurs && areUpdated(subject));
}

/** With the strategy Rollout, pods of an earlier template get the size only by a rollout, if their owner allows one. */
function isLeftToRollouts(subject: Subject): boolean {
  if (mayResizePods(subject)) return false;
  const { pipe, active } = subject;
  return active.some(({ state, pod }) => state !== "done" && !isOfTemplate(pipe, pod));
}

/**
 * A pod that can get the size of its template again in place is not replaced. A pod that is not seen can only be
 * replaced, with the others.
 */
function returned(subject: Subject, step: PodsStep): PipeDecision | undefined {
  if (!seesAllPods(subject)) return undefined;
  if (step.type === "defer") return inProgress(step, subject);
  const actions = podsToReturn(subject);
  const isUnderWay = step.type === "wait" && subject.active.every(({ state }) => state !== "unchanged");
  if (actions.length === 0 && !isUnderWay && !hasPodWriteInFlight(subject)) return undefined;
  return {
    state: "rolling",
    phase: "resizing",
    activity: "its pods get the size of their template again",
    next: { type: "continue", actions },
    ...(step.type === "wait" ? { recheckAtMs: step.untilMs } : {}),
  };
}

/** Only its owner replaces a pod that is held. */
function keptByOwner({ pipe, active }: Subject): PipeDecision | undefined {
  const isKept = active.some(({ pod, state }) => state !== "done" && isHeld(pipe, pod));
  return isKept ? { state: "paused", activity: heldBy(pipe), waitsForOwner: true } : undefined;
}

function waitsFor(way: Way, fallback?: Begin["fallback"]): PipeDecision {
  const next = { type: "begin", way, attempts: 1, isRequested: false, fallback } as const;
  return { state: "waiting", next };
}

export function podsInProgress(subject: Subject): PipeDecision | undefined {
  const isBegun = subject.active.some(({ state, record }) => state !== "unchanged" || record !== undefined);
  return isBegun && isResizable(subject) ? inProgress(podsStep(subject), subject) : undefined;
}

export function sizeRefused(subject: Subject): PipeDecision | undefined {
  const refused = refusedSize(subject);
  if (!refused) return undefined;
  const retryAtMs = dueAtMs(refused.record, refused.pod, subject);
  const failure = failureOf(refused.record, retryAtMs);
  if (!failure || retryAtMs <= subject.nowMs) return undefined;
  // If the template has the size, its pods would return to what is refused. While a write is repeated, it may succeed.
  const isKept = failure.isRepeated || sameSize(subject.pipe.size, subject.desired);
  const actions = isKept ? [] : podsToReturn(subject);
  return { state: "failed", failure, next: { type: "continue", actions } };
}

export function podsReturn(subject: Subject): PipeDecision | undefined {
  const { pipe } = subject;
  // The rollout of a StatefulSet, and of a Deployment after a commit, is not complete while containers crash later.
  const isSettled =
    pipe.rollout.isComplete || ((pipe.inTurn !== undefined || hasCompleted(pipe)) && areUpdated(subject));
  if (isResizable(subject) || !isSettled) return undefined;
  const actions = podsToReturn(subject);
  if (actions.length === 0) return undefined;
  const then = isFollowedByRollout(subject) ? " before they are replaced" : "";
  const activity = `its pods get their old size again${then}`;
  return { state: "rolling", phase: "resizing", activity, next: { type: "continue", actions } };
}

function isResizable(subject: Subject): boolean {
  // Without all requests and the memory limit, only a rollout can apply the size.
  return mayResizePods(subject) && hasAllResources(subject.pipe) && !failedBefore(subject);
}

function inProgress(step: PodsStep, subject: Subject): PipeDecision {
  if (step.type === "fail") return fallsBack(subject, step);
  const moving = {
    state: "rolling",
    phase: "resizing",
    activity: "its pods are being resized in place",
  } as const;
  if (step.type === "conflict") return { state: "failed", failure: step.failure };
  if (step.type === "resize")
    return { ...moving, failure: step.failure, next: { type: "continue", actions: step.actions } };
  if (step.type === "defer") {
    const { actions, failure, message: obstacle, untilMs: recheckAtMs, isHeld } = step;
    // Like every pipe that waits for a window, it keeps no other one from its size.
    if (isHeld) return { state: "waiting", activity: obstacle, recheckAtMs };
    const state = failure ? "failed" : "rolling";
    return { ...moving, state, failure, obstacle, recheckAtMs, next: { type: "continue", actions } };
  }
  const { untilMs: recheckAtMs, failure, hindrance, because } = step;
  const activity = because === undefined ? moving.activity : `${moving.activity}; ${because}`;
  if (hindrance) return waitsInPlace(subject, { ...hindrance, untilMs: recheckAtMs });
  return { ...moving, activity, state: failure ? "retrying" : "rolling", failure, recheckAtMs };
}
