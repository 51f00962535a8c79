import type { PipeState, RolloutPhase } from "../../domain/rollout-plan.ts";
import { sameSize } from "../../domain/size.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { Assessment, PipeContext, PipeDecision, Subject } from "../assessment.ts";
import { resizerActivity } from "../in-place/drift.ts";
import { leadsToRollout } from "../in-place/fall-back.ts";
import { failedBefore } from "../in-place/problem.ts";
import type { Snapshot } from "../observe/observe.ts";
import { containerNameOf, isRollingOut, type PipeView } from "../observe/pipe-view.ts";
import { resourcesFor, sizeOfAllotment } from "../observe/resources.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import { activePods } from "../pods.ts";
import { unlessAhead, unlessOrdinary } from "../retry.ts";
import { rolloutOutlook } from "../rollout/failure.ts";
import { timedPhase, timeoutMsOf } from "../rollout/phase.ts";
import { stuckPod, stuckRemark } from "../rollout/repair.ts";
import { decidePipe } from "./rules.ts";

type Pods = Pick<Snapshot, "pods" | "endedPods">;

/** Decides about a pipe by itself (rules.ts); its place among the others follows (passes.ts). */
export function assess(pipe: PipeView, pods: Pods, context: PipeContext): Assessment {
  const subject = subjectOf(pipe, pods, context);
  const decision = decidePipe(subject);
  // A rule knows more than the workload shows.
  const timed = decision.phase ? { phase: decision.phase } : timedPhase(pipe, context);
  const { abandoned, recheckAtMs } = abandonedRollout(subject);
  const { proof, endsAtMs } = proofOf(subject, decision);
  return {
    ...decision,
    subject,
    pipe,
    proof,
    abandoned,
    failure: unlessOrdinary(decision.failure),
    ...timed,
    recheckAtMs: earliest(
      context.nowMs,
      ...[decision.recheckAtMs, decision.failure?.retryAtMs, recheckAtMs, endsAtMs],
      stuckPod(subject)?.dueAtMs,
    ),
    remark: remarkOn(subject, decision.state, timed.phase),
  };
}

function subjectOf(pipe: PipeView, { pods, endedPods }: Pods, context: PipeContext): Subject {
  const name = nameOf(pipe);
  const container = containerNameOf(pipe);
  const target = resourcesFor(context.desired, pipe.cpuLimitFollows);
  const about = { ...context, pipe, container, target, pods: pods.get(name) ?? [] };
  return { ...about, active: activePods(about), endedPod: endedPods.get(name) };
}

/**
 * A rollout that stops old pods first may have left the pipe without any, so it is rolled back even if a different size
 * is desired now. Other pipes still have their old pods.
 */
function abandonedRollout(subject: Subject): Pick<Assessment, "abandoned" | "recheckAtMs"> {
  const { pipe, desired } = subject;
  const isWanted = sameSize(pipe.size, desired) || pipe.lastRollout?.isRollback;
  if (isWanted || !pipe.stopsOldPodsFirst || !isRollingOut(pipe)) return {};
  const { cause, recheckAtMs } = rolloutOutlook(subject);
  return cause ? { abandoned: cause } : { recheckAtMs };
}

/**
 * A pipe proves the size while its pods run it and are available. After a resize in place to less memory, or a restart,
 * that must last for a while. Until then, other pipes wait for it, but not for longer than for a rollout.
 */
function proofOf(
  subject: Subject,
  { state }: PipeDecision,
): Pick<Assessment, "proof"> & { readonly endsAtMs?: number } {
  const { pipe, active, nowMs, desired, timeouts } = subject;
  const { lastRollout, rollout } = pipe;
  if ((state !== "done" && state !== "resized") || pipe.replicas === 0) return { proof: "none" };
  const isCommitted = sameSize(pipe.size, desired);
  const isOfRollout = isCommitted && lastRollout !== undefined && lastRollout.attempts > 0;
  const appliedAtMs = active.map(({ pod }) => pod.resizedAtMs ?? 0);
  if (isOfRollout) appliedAtMs.push(lastRollout.startedAtMs);
  const sinceMs = Math.max(0, ...appliedAtMs.map((each) => unlessAhead(each, nowMs)));
  const containers = active.flatMap(({ pod }) => pod.containers);
  const restartedAtMs = Math.max(0, ...containers.map((each) => each.restartedAtMs));
  const heldMs = elapsedMs(sinceMs, nowMs);
  const steadyMs = Math.min(heldMs, elapsedMs(restartedAtMs, nowMs));
  // Too little memory may show only later, and a container may crash repeatedly.
  const holdMs = Math.max(
    isDoubtful(subject) ? timeouts.smallerMemoryMs : 0,
    restartedAtMs > sinceMs ? timeouts.crashLoopMs : 0,
  );
  if (rollout.isAvailable && steadyMs >= holdMs) return { proof: "proven" };
  const limitMs = timeoutMsOf(pipe, subject);
  const isOurs = isOfRollout || !isCommitted;
  if (!isOurs || heldMs >= limitMs) return { proof: "none" };
  return { proof: "proving", endsAtMs: nowMs + (rollout.isAvailable ? holdMs - steadyMs : limitMs - heldMs) };
}

/** True if the containers were resized in place to less memory, or restarted when they got the size. */
function isDoubtful(subject: Subject): boolean {
  const { pipe, desired } = subject;
  const { inPlaceStartedAtMs, lastGoodSize } = pipe.lastRollout ?? {};
  const committedFrom = inPlaceStartedAtMs === undefined ? undefined : lastGoodSize;
  const before = sameSize(pipe.size, desired) ? sizeOfAllotment(committedFrom) : pipe.size;
  const isSmaller = before !== undefined && before.memoryGib > desired.memoryGib;
  return isSmaller || failedBefore(subject)?.reason === "Restarted";
}

/** The earliest of the times that are still to come. */
function earliest(nowMs: number, ...times: readonly (number | undefined)[]): number | undefined {
  const atMs = Math.min(...times.flatMap((each) => (each !== undefined && each > nowMs ? each : [])));
  return Number.isFinite(atMs) ? atMs : undefined;
}

/** Information for people that does not affect the decision; `undefined` if there is none. */
function remarkOn(subject: Subject, state: PipeState, phase: RolloutPhase): string | undefined {
  const remarks = [
    restartRemark(subject, phase),
    horizontalAutoscalerRemark(subject),
    qosRemark(subject, state),
    resizerRemark(subject, state),
    stuckRemark(subject),
  ].filter((each) => each !== undefined);
  return remarks.length === 0 ? undefined : remarks.join(" ");
}

/** Only while pods are being replaced. */
function restartRemark(subject: Subject, phase: RolloutPhase): string | undefined {
  const { pipe, desired } = subject;
  const { inPlaceFailure } = pipe.lastRollout ?? {};
  if (phase !== "rolling-out" || !inPlaceFailure || !sameSize(inPlaceFailure.size, desired)) return undefined;
  if (!sameSize(pipe.size, desired) || !leadsToRollout(inPlaceFailure, subject)) return undefined;
  return `The pods of ${nameOf(pipe)} are being replaced because they cannot be resized in place: ${inPlaceFailure.message}.`;
}

function horizontalAutoscalerRemark({ pipe, autoscalers }: Subject): string | undefined {
  const scalers = autoscalers.get(nameOf(pipe));
  const horizontal = scalers?.find(({ kind }) => kind === "HorizontalPodAutoscaler");
  if (!horizontal) return undefined;
  const name = JSON.stringify(horizontal.metadata.name);
  return `The HorizontalPodAutoscaler ${name} scales ${nameOf(pipe)} by the utilization of its requests, so another size may change its number of replicas.`;
}

function resizerRemark(subject: Subject, state: PipeState): string | undefined {
  const activity = state === "rolling" ? resizerActivity(subject) : undefined;
  return activity && `${nameOf(subject.pipe)} ${activity}.`;
}

/** A limit that follows the size is mentioned only while it changes. Other containers of the pods are not known here. */
function qosRemark({ pipe, desired }: Subject, state: PipeState): string | undefined {
  const { cpuLimitMillicores, cpuLimitFollows } = pipe;
  if (cpuLimitFollows && state !== "done")
    return `The CPU limit of ${nameOf(pipe)} follows the size, so its container stays Guaranteed.`;
  if (cpuLimitMillicores !== desired.cpuMillicores) return undefined;
  return `The CPU limit of ${nameOf(pipe)} equals the size, so its container with this size is Guaranteed and not Burstable; the QoS class of a pod depends on all of its containers.`;
}
