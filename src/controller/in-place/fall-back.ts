import type { Action, InPlaceAction } from "../actions.ts";
import type { PipeDecision, Problem, Subject } from "../assessment.ts";
import type { Fallback } from "../observe/last-rollout.ts";
import { isOfTemplate, presentAllotment } from "../observe/pipe-view.ts";
import type { PodView } from "../observe/pod-view.ts";
import {
  formatAllotment,
  hasResources,
  type Resources,
  resourcesFor,
  resourcesOf,
} from "../observe/resources.ts";
import { mayReplacePods } from "../pods.ts";
import { dueAtMs, failureOf, repeatableAtMs } from "../retry.ts";
import { adoption, inPlaceFailureTo } from "../rollout/annotation.ts";
import { isLasting, waitsInPlace } from "./wait.ts";

/** The size cannot be given in place, so that is recorded before anything else. */
export function fallsBack(subject: Subject, problem: Problem): PipeDecision {
  if (!mayReplacePods(subject) && !isLasting(problem)) return waitsInPlace(subject, problem);
  const { reason, message } = problem;
  const fallback = { reason, message };
  const record = subject.writes.get(subject.pipe.metadata.uid, "adopt");
  const failure = failureOf(record, dueAtMs(record, subject));
  const next = { type: "continue", actions: recordFailure(subject, fallback) } as const;
  return { state: failure ? "retrying" : "rolling", phase: "resizing", failure, next };
}

/** Records in the annotation that the size is not tried in place again. Nothing else would show it later. */
export function recordFailure(subject: Subject, fallback: Fallback): readonly Action[] {
  const { pipe, writes, desired, nowMs } = subject;
  const inPlaceFailure = { ...inPlaceFailureTo(desired, fallback, nowMs), revision: pipe.revision };
  const present = pipe.lastRollout ?? adoption(subject);
  const record = writes.get(pipe.metadata.uid, "adopt");
  const isDue = record?.outcome.type === "done" || dueAtMs(record, subject) <= nowMs;
  return present && isDue ? [{ type: "adopt", pipe, rollout: { ...present, inPlaceFailure } }] : [];
}

/**
 * Pods that get the size of their template again before a rollout. Otherwise a larger or a deferred one takes the room of
 * the new pods, and if the rollout fails, the old pods keep a size that nothing reports. A rollout does not wait for the
 * second attempt: a pod that cannot be returned is replaced anyway.
 */
export function podsToReturn(subject: Subject): readonly InPlaceAction[] {
  const { pipe } = subject;
  const allotment = presentAllotment(pipe);
  return allotment ? returnPods(subject, resourcesFor(allotment, pipe.cpuLimitFollows)) : [];
}

export function returnPods(subject: Subject, resources: Resources): readonly InPlaceAction[] {
  const { pipe, writes, container, active, nowMs } = subject;
  const isDue = ({ metadata: { uid, generation } }: PodView) => {
    const record = writes.get(uid, "return-pod");
    if (record?.subject !== formatAllotment(resources)) return true;
    return record.outcome.type === "failed" && repeatableAtMs(record, generation, subject) <= nowMs;
  };
  return active
    .filter(({ pod, own }) => isOfTemplate(pipe, pod) && !hasResources(own?.resources, resources))
    .filter(({ pod }) => isDue(pod))
    .map(({ pod }) => ({ type: "return-pod", pipe, pod, container, resources }));
}

/** The first pod without the size: what it runs with, and its template. */
export function stalePod({ container: name, target, active }: Subject) {
  for (const { pod, own } of active) {
    const resources = [own?.resources, own?.actual].find((each) => each && !hasResources(each, target));
    if (resources) return { templateHash: pod.templateHash, resources: resourcesOf({ name, resources }) };
  }
  return undefined;
}
