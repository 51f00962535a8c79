import type { FailureReason } from "../../crd/reasons.ts";
import type { ResizeStrategy } from "../../domain/resize-strategy.ts";
import { sameSize } from "../../domain/size.ts";
import type { PipeDecision, Subject, Way } from "../assessment.ts";
import { commitInFlight, templateFollows } from "../in-place/commit-rules.ts";
import { waitsForResizer } from "../in-place/drift.ts";
import { isUnrequested, waitsForRequest, waitsInPlace } from "../in-place/fall-back.ts";
import { podsFollow, podsInProgress, podsReturn, sizeRefused } from "../in-place/rules.ts";
import { IN_PLACE } from "../in-place/way.ts";
import { effectOn } from "../observe/autoscaler-view.ts";
import { hasAllResources, hasNoPods } from "../observe/pipe-view.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import { isUnwatched, mayReplacePods, seesPods } from "../pods.ts";
import { FIELD_CONFLICT } from "../retry.ts";
import { failedBefore, failureUntilTurn, nextAttempt } from "../rollout/prior-failure.ts";
import {
  annotationRemoved,
  hasSize,
  leftToOwner,
  rolloutOfController,
  rolloutOfOwner,
  writeInFlight,
} from "../rollout/rules.ts";
import { ROLLOUT } from "../rollout/way.ts";

/** Decides about a pipe, or leaves it to the next rule. */
type Rule = (subject: Subject) => PipeDecision | undefined;

/** The ways that each strategy allows, the best one first. */
const WAYS: Readonly<Record<ResizeStrategy, readonly Way[]>> = {
  InPlaceOrRollout: [IN_PLACE, ROLLOUT],
  InPlace: [IN_PLACE],
  Rollout: [ROLLOUT],
};

/** The state of a pipe, and what happens to it. The first rule that applies decides. */
const RULES: readonly Rule[] = [
  // A Deployment must not stay paused, whatever is wanted now.
  commitInFlight,
  // A StatefulSet that is no longer watched may have changed.
  unwatched,
  // Only a person can say which container is meant.
  containerUnclear,
  // An autoscaler would replace the size with its own.
  setByAutoscaler,
  // A CPU limit belongs to the owner of the pipe, and must not be below the request.
  cpuLimitTooLow,
  // Kubernetes might not be able to create pods with another template.
  nameTooLong,
  // Until the outcome of a write is known, nothing else is decided.
  writeInFlight,
  when(templateHasSize, [
    // A rollout that the controller began either completes or is rolled back.
    rolloutOfController,
    // A webhook that removes the annotation would make a restarted controller forget the rollout.
    annotationRemoved,
    // Pods show whether they run the size, no matter which writer changed the template.
    hasSize,
    when(hasVisiblePods, [
      // A known tool gives a pod another size for a while.
      waitsForResizer,
      // A pod that differs from its template is resized like any other.
      podsFollow,
    ]),
    // The owner gives the pipe its size by a rollout, or soon by resuming one.
    rolloutOfOwner,
  ]),
  // A failed attempt is not repeated at once.
  failedBefore,
  when(hasVisiblePods, [
    // A known tool gives a pod another size for a while.
    waitsForResizer,
    // A size that is refused for running pods is refused for new ones.
    sizeRefused,
    // All pods run the size, so the template follows without a restart.
    templateFollows,
    // A resize that has begun goes on.
    podsInProgress,
    // The pods that were resized get their old size again: before a rollout, or with InPlace instead of one.
    podsReturn,
  ]),
];

/** A pipe that no rule applies to waits: usually, until its turn comes (passes.ts). */
export function decidePipe(subject: Subject): PipeDecision {
  return firstOf(RULES, subject) ?? waits(subject);
}

function firstOf(rules: readonly Rule[], subject: Subject): PipeDecision | undefined {
  for (const rule of rules) {
    const decision = rule(subject);
    if (decision) return decision;
  }
  return undefined;
}

function when(condition: (subject: Subject) => boolean, rules: readonly Rule[]): Rule {
  return (subject) => (condition(subject) ? firstOf(rules, subject) : undefined);
}

function templateHasSize({ pipe, desired }: Subject): boolean {
  return sameSize(pipe.size, desired);
}

function hasVisiblePods(subject: Subject): boolean {
  return subject.pipe.replicas > 0 && seesPods(subject);
}

function unwatched(subject: Subject): PipeDecision | undefined {
  const { statefulSetsProblem: message = "", nowMs } = subject;
  if (!isUnwatched(subject)) return undefined;
  return { state: "retrying", failure: { reason: "Forbidden", message, attempts: 1, atMs: nowMs } };
}

function containerUnclear({ pipe, nowMs }: Subject): PipeDecision | undefined {
  if (!("problem" in pipe.container)) return undefined;
  return unsizable("ContainerUnclear", pipe.container.problem, nowMs);
}

function setByAutoscaler({ pipe, container, autoscalers, nowMs }: Subject): PipeDecision | undefined {
  const found = autoscalers.get(nameOf(pipe))?.find(({ kind }) => kind === "VerticalPodAutoscaler");
  if (!found) return undefined;
  const name = JSON.stringify(found.metadata.name);
  const problem =
    effectOn(found, container) === "size"
      ? 'also sets the size of its pods: delete it, set its updateMode to "Off", or exempt the container from it'
      : `also sets the CPU of its pods when they start, whatever its updateMode is: remove startupBoost from it, or add a containerPolicy for the container "${container}" with startupBoost.cpu of type "Factor" and factor 1`;
  return unsizable(FIELD_CONFLICT, `the VerticalPodAutoscaler ${name} ${problem}`, nowMs);
}

function cpuLimitTooLow({ pipe, container, desired, nowMs }: Subject): PipeDecision | undefined {
  const { cpuLimitMillicores, size } = pipe;
  if (cpuLimitMillicores === undefined || cpuLimitMillicores >= desired.cpuMillicores) return undefined;
  if (sameSize(size, desired)) return undefined;
  const message = `the container "${container}" has a CPU limit of ${cpuLimitMillicores}m, which is below the ${desired.cpuMillicores}m of the size: remove limits.cpu, or set it to at least that`;
  return unsizable("CpuLimitTooLow", message, nowMs);
}

/**
 * The label of each pod of a StatefulSet must not be longer. It is the name of the StatefulSet, a hyphen and a hash of up
 * to ten characters, which may be longer with another template than it is now.
 */
const MAX_LABEL_LENGTH = 63;
const MAX_NAME_LENGTH = MAX_LABEL_LENGTH - "-5494b6bfc4".length;

function nameTooLong({ pipe, desired, nowMs }: Subject): PipeDecision | undefined {
  const { length } = pipe.metadata.name;
  if (!pipe.inTurn || length <= MAX_NAME_LENGTH || sameSize(pipe.size, desired)) return undefined;
  const message = `the name of the StatefulSet has ${length} characters, so with another size the label controller-revision-hash of its pods could get longer than the ${MAX_LABEL_LENGTH} characters that Kubernetes allows, and no pod could be created: create it again with a name of at most ${MAX_NAME_LENGTH} characters`;
  return unsizable("Refused", message, nowMs);
}

/** Someone must fix the problem before the pipe can be resized. */
function unsizable(reason: FailureReason, message: string, nowMs: number): PipeDecision {
  return { state: "unsizable", failure: { reason, message, attempts: 1, atMs: nowMs } };
}

/** The pipe waits for the best way that is possible, now or soon. `fallback`: the reason if it is not the first one. */
function waits(subject: Subject): PipeDecision {
  const { strategy, pipe } = subject;
  const problems = WAYS[strategy].map((way) => ({ way, problem: way.problem?.(subject) }));
  const chosen = problems.find(({ problem }) => !problem || problem.untilMs !== undefined);
  const [first] = problems;
  // The template of a pipe without pods can be written, because that restarts nothing.
  const isIdle = hasNoPods(pipe);
  // If the StatefulSet is scaled up before its pods have ended, a new template would replace the remaining ones.
  if (pipe.replicas === 0 && pipe.inTurn && !isIdle)
    return { state: "waiting", activity: "its pods have not ended yet" };
  const hasLastWay = isIdle || mayReplacePods(subject);
  if (!chosen && first?.problem && !hasLastWay) return waitsInPlace(subject, first.problem);
  const way = chosen?.way ?? ROLLOUT;
  if (way.replacesPods && !isIdle && isUnrequested(subject)) return waitsForRequest(first?.problem);
  const left = way.replacesPods && !isIdle ? leftToOwner(subject) : undefined;
  if (left) return left;
  const isReported = first?.way !== way && pipe.replicas > 0 && hasAllResources(pipe);
  return {
    state: "waiting",
    failure: failureUntilTurn(subject),
    next: { type: "begin", way, ...nextAttempt(subject), fallback: isReported ? first?.problem : undefined },
    ...(chosen?.problem ? { activity: chosen.problem.message, recheckAtMs: chosen.problem.untilMs } : {}),
  };
}
