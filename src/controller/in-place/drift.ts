import { sameSize } from "../../domain/size.ts";
import type { InPlaceAction } from "../actions.ts";
import type { ActivePod, Failure, PipeDecision, PodsStep, Problem, Subject } from "../assessment.ts";
import type { InPlaceFailure } from "../observe/last-rollout.ts";
import { templateResources } from "../observe/pipe-view.ts";
import { hasResources } from "../observe/resources.ts";
import { podsAtOnce } from "../pods.ts";
import { dueAtMs, FIELD_CONFLICT, failureOf, isRetryRequested, isUsedUp, retriedAt } from "../retry.ts";
import { failedBefore, presentProblem, problemOfPod } from "./problem.ts";

/*
 * Another tool, such as a right-sizer or a startup boost, resizes a pod that had the desired size. Only the pod shows
 * it. The pod is resized again in place, with the same delays and the same limit as for a template that another writer
 * changes.
 */

/** True if another writer changed the size of a pod after it had the desired one. */
export function isDrifted({ state, own, record }: ActivePod, { pipe, desired }: Subject): boolean {
  if (state !== "unchanged") return false;
  // The resize succeeded, and the pod has another size again.
  if (record?.outcome.type === "done") return true;
  return own?.resizedBy !== undefined && sameSize(pipe.size, desired);
}

/**
 * Returns why this size failed in place before, if that says something about the pods that do not have it: not if they
 * had it and another writer resized them, or if they were resized again since the failure.
 */
export function standingFailure(subject: Subject): InPlaceFailure | undefined {
  const failure = failedBefore(subject);
  if (!failure) return undefined;
  const others = subject.active.filter(({ state }) => state !== "done");
  const isLater = ({ state, record }: ActivePod) =>
    state !== "unchanged" && record !== undefined && record.lastAtMs > failure.atMs;
  const isOutdated = others.length > 0 && others.every((each) => isDrifted(each, subject) || isLater(each));
  return isOutdated ? undefined : failure;
}

/**
 * The next attempt to give these pods the desired size again.
 *
 * @param drifted at least one; either all of them can be resized now, or none can
 */
export function repairDrift(subject: Subject, drifted: readonly ActivePod[]): PodsStep | undefined {
  const { nowMs, pipe, container, target: resources, active } = subject;
  const [first] = drifted;
  if (!first) return undefined;
  const failure = driftFailure(subject, first, drifted.length - 1);
  // After a restart of the controller, the count begins again, because nothing but its memory has it.
  const untilMs = Math.min(...drifted.map(({ pod, record }) => dueAtMs(record, pod, subject)));
  if (untilMs > nowMs) {
    const known = retriedAt(untilMs, failure);
    const isLast = drifted.every(({ record }) => record && isUsedUp(record, subject));
    return isLast ? { type: "conflict", failure: known } : { type: "wait", untilMs, failure: known };
  }
  const problem = presentProblem(subject) ?? problemOfPod(first, subject);
  if (problem) return hindered(failure, problem);
  const unchanged = active.filter(({ state }) => state === "unchanged");
  const actions = drifted
    .filter(({ pod, record }) => dueAtMs(record, pod, subject) <= nowMs)
    .slice(0, podsAtOnce(unchanged, subject))
    .map((each): InPlaceAction => {
      const isRequested = each.record !== undefined && isRetryRequested(each.record.lastAtMs, subject);
      return { type: "resize-pod", pipe, pod: each.pod, container, resources, isRequested };
    });
  return { type: "resize", actions, failure };
}

/** A container that does not run starts again soon. */
function hindered(drift: Failure, { reason, message: because, untilMs }: Problem): PodsStep {
  const failure = { ...drift, message: `${drift.message}. It cannot be resized now: ${because}` };
  if (untilMs === undefined && reason !== "ContainerNotRunning") return { type: "conflict", failure };
  return { type: "wait", untilMs: untilMs ?? Number.POSITIVE_INFINITY, failure };
}

function driftFailure({ nowMs }: Subject, { pod, own, record }: ActivePod, more: number): Failure {
  const failed = failureOf(record);
  if (failed) return failed;
  const others = more === 0 ? "" : ` and ${more} more`;
  const writer =
    own?.resizedBy === undefined ? "another writer" : `another writer, ${JSON.stringify(own.resizedBy)},`;
  const message = `${writer} has resized the pod ${pod.metadata.name}${others}: exempt the pipe from it`;
  const { attempts = 1, lastAtMs: atMs = nowMs } = record ?? {};
  return { reason: FIELD_CONFLICT, message, attempts, atMs };
}

/**
 * A known tool (`toleratedResizers`), such as a startup boost, gives a pod another size for a while. Nothing is written
 * until the pod has the size of its template again. Then it is resized like any other pod.
 */
export function waitsForResizer(subject: Subject): PipeDecision | undefined {
  const activity = resizerActivity(subject);
  return activity === undefined ? undefined : { state: "rolling", activity: `it ${activity}` };
}

/** Why the pipe waits for a known tool: the end of a sentence after its name; `undefined` if it does not wait. */
export function resizerActivity({ pipe, active, policy }: Subject): string | undefined {
  const { toleratedResizers = [] } = policy;
  if (toleratedResizers.length === 0) return undefined;
  const ofTemplate = templateResources(pipe);
  const found = active.find(
    ({ state, own }) =>
      state === "unchanged" &&
      own?.resizedBy !== undefined &&
      toleratedResizers.includes(own.resizedBy) &&
      !(ofTemplate && hasResources(own.resources, ofTemplate)),
  );
  if (!found) return undefined;
  const { pod, own } = found;
  return `waits for ${JSON.stringify(own?.resizedBy)}, which resized the pod ${pod.metadata.name}, to return it to its size`;
}
