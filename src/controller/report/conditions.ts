import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { failureReason, type Reason } from "../../crd/reasons.ts";
import { describeSize } from "../../domain/size.ts";
import { formatTime } from "../../kube/time.ts";
import type { Assessment } from "../assessment.ts";
import type { Sizing } from "../decide/decision.ts";
import { isHindered } from "../in-place/fall-back.ts";
import type { Snapshot } from "../observe/observe.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import { describeFailure, stalls } from "./failures.ts";

/** Reason and message of the conditions: one word for programs, and sentences for people. */
export interface ConditionSummary {
  /** If it is not ready, Stalled means that it needs intervention, and Reconciling that it is in progress or waits. */
  readonly type: "Ready" | "Suspended" | "Reconciling" | "Stalled";
  readonly reason: Reason;
  readonly message: string;
}

/** In order of importance for people: the first that applies wins. */
export function summarizeConditions(
  scaling: PipeScalingView,
  tier: Snapshot["tier"],
  sizing: Sizing | undefined,
  failures: readonly PipeFailure[],
): ConditionSummary {
  const [worst, ...others] = failures;
  const alsoFailed = listed(
    "Also failed",
    others.map(({ pipe }) => pipe),
  );
  const failed = [worst && sentence(describeFailure(worst)), alsoFailed];
  if (!tier.ok) {
    const { reason, message } = tier.obstacle;
    return { type: "Stalled", reason, message: text(message, ...failed) };
  }
  if (!sizing) {
    const message = text("The PipeScaling is being deleted.", ...failed);
    return { type: "Reconciling", reason: "Deleting", message };
  }
  const { desired, assessments, boost } = sizing;
  const boostNote = boost && `The boost ends at ${formatTime(boost.untilMs)}.`;
  const progress = text(progressOf(sizing), boostNote, ...remarksOf(sizing));
  if (scaling.spec.suspend)
    return { type: "Suspended", reason: "Suspended", message: `Suspended: ${progress}` };
  const isStalled = assessments.some(stalls) || failures.some(({ reason }) => reason === "NotResizedInPlace");
  if (worst)
    return {
      type: isStalled ? "Stalled" : "Reconciling",
      reason: failureReason(worst.reason),
      message: text(
        sentence(describeFailure(worst)),
        worst.nextRetryAt &&
          `Attempt ${worst.attempts}; the next one is at ${formatTime(Date.parse(worst.nextRetryAt))}.`,
        progress,
        alsoFailed,
        malformedMessage(scaling),
      ),
    };
  if (assessments.every(({ state }) => state === "done")) {
    if (desired.source !== "TierLimit") return { type: "Ready", reason: "Scaled", message: progress };
    const message = text(progress, "The spec requests more than the organization's tier allows.");
    return { type: "Ready", reason: "TierLimited", message };
  }
  return {
    type: "Reconciling",
    reason: waitingReason(sizing),
    message: text(progress, ...underWay(sizing), malformedMessage(scaling)),
  };
}

/** Reports a wait for a window or for owners only if nothing else is in progress. */
function waitingReason({ assessments, waitReason }: Sizing): Reason {
  const pending = assessments.filter(({ state }) => state !== "done");
  if (pending.every(({ waitsForOwner }) => waitsForOwner)) return "WaitingForOwner";
  const isRolling = pending.some(({ state }) => state === "rolling");
  return waitReason === "window" && !isRolling ? "WaitingForWindow" : "Progressing";
}

function progressOf({ desired, outOfMemory, assessments }: Sizing): string {
  const size = describeSize(desired.size);
  const [first] = assessments;
  if (!first) return `The service has no database pipes; a new one gets ${size}.`;
  if (outOfMemory) {
    const returned = assessments.filter(({ isReturned }) => isReturned).length;
    return `${returned} of ${assessments.length} pipes have ${describeSize(first.subject.desired)} instead of ${size}.`;
  }
  const done = assessments.filter(runsSize).length;
  if (done < assessments.length) return `${done} of ${assessments.length} pipes run ${size}.`;
  const pipes = assessments.map(({ pipe }) => pipe);
  return `${allHaveSize(pipes, size)}.`;
}

/** For people: what is true when every pipe has the size; a sentence without a full stop. */
export function allHaveSize(pipes: readonly Pick<PipeView, "replicas">[], size: string): string {
  const total = pipes.length;
  const idle = pipes.filter(({ replicas }) => replicas === 0).length;
  if (idle === 0) return `${allPipes(total, "run")} ${size}`;
  if (idle === total) return `${allPipes(total, "have")} ${size}, and no replicas`;
  return `${total - idle} of ${total} pipes run ${size}, and ${idle} without replicas ${idle === 1 ? "has" : "have"} it`;
}

/** True if the pods of a pipe run the desired size. */
export function runsSize({ state }: Assessment): boolean {
  return state === "done" || state === "resized";
}

/** The first one, and the number of the others. */
function remarksOf({ assessments }: Sizing): string[] {
  const [first, ...others] = assessments.flatMap(({ remark }) => remark ?? []);
  if (first === undefined) return [];
  const more = others.length === 1 ? "1 more pipe" : `${others.length} more pipes`;
  return others.length === 0 ? [first] : [first, `There are remarks on ${more}.`];
}

/** Returns the start of a sentence. */
function allPipes(pipes: number, verb: "run" | "have"): string {
  return pipes === 1 ? `The one pipe ${verb === "run" ? "runs" : "has"}` : `All ${pipes} pipes ${verb}`;
}

function underWay(sizing: Sizing): (string | undefined)[] {
  const { assessments } = sizing;
  const named = (state: Assessment["state"]) =>
    assessments.filter((each) => each.state === state && !each.waitsForOwner).map(({ pipe }) => nameOf(pipe));
  const resized = assessments.filter(({ state, waitsForOwner }) => state === "resized" && !waitsForOwner);
  const following = resized.filter(({ hindrance }) => !hindrance).map(({ pipe }) => nameOf(pipe));
  const unable = resized.filter(({ hindrance }) => hindrance);
  const kept = assessments.filter(({ waitsForOwner }) => waitsForOwner).map(({ pipe }) => nameOf(pipe));
  const hindered = assessments.filter(isHindered);
  const waiting = named("waiting").length - hindered.length;
  return [
    listed("In progress", named("rolling")),
    listed(following.length === 1 ? "Its template follows" : "Their templates follow", following),
    listed("With a template that cannot follow", unable.map(withReason)),
    lackOfRoom(sizing),
    listed("Paused by their owner", named("paused")),
    listed("Waiting for their owner", kept),
    ownersChoice(sizing),
    listed("Cannot be resized in place, so waiting", hindered.map(withReason)),
    waiting > 0 ? `${waiting} waiting${waitingFor(sizing)}.` : undefined,
  ];
}

function withReason({ pipe, hindrance }: Assessment): string {
  return `${nameOf(pipe)} (${hindrance?.reason})`;
}

/** Names only the first pipe. A pod whose resize is deferred runs on its node, and the obstacle names it. */
function lackOfRoom({ assessments }: Sizing): string | undefined {
  const found = assessments.find(({ obstacle }) => obstacle !== undefined);
  const lead = found?.phase === "resizing" ? "" : " fits no node at present";
  return found && sentence(`${nameOf(found.pipe)}${lead}: ${found.obstacle}`);
}

/** Names only the first pipe. The list of pending pipes has a message for each. */
function ownersChoice({ assessments }: Sizing): string | undefined {
  const held = assessments.find(({ waitsForOwner }) => waitsForOwner);
  return held && sentence(`${nameOf(held.pipe)}: ${held.activity}`);
}

function malformedMessage({ malformedAnnotations: [name] }: PipeScalingView): string | undefined {
  return name && `The annotation ${name} is not a valid time: write it as 2026-01-31T12:00:00Z.`;
}

function text(...sentences: readonly (string | undefined)[]): string {
  return sentences.filter((each) => each !== undefined && each !== "").join(" ");
}

function sentence(words: string): string {
  return words.endsWith(".") ? words : `${words}.`;
}

const MOST_NAMES = 5;

/** The first names, and the number of the others. */
function nameList(names: readonly string[]): string {
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : "";
  return `${names.slice(0, MOST_NAMES).join(", ")}${more}`;
}

function listed(title: string, names: readonly string[]): string | undefined {
  return names.length === 0 ? undefined : `${title}: ${nameList(names)}.`;
}

/**
 * Returns why a pipe does not run the desired size yet, for people; `undefined` if nothing but time is needed. The most
 * important reason comes first: a failure, then a pod for which no node has room.
 */
export function whyPending(pipe: Assessment, sizing: Sizing): string | undefined {
  const reason = pipe.failure?.message ?? pipe.obstacle ?? pipe.activity;
  return reason ?? (pipe.state === "waiting" ? `waiting${waitingFor(sizing)}` : undefined);
}

/** Returns what the waiting pipes of a service wait for, as the end of a sentence. */
export function waitingFor({ waitReason, blockedBy, window }: Sizing): string {
  const names = nameList(blockedBy);
  switch (waitReason) {
    case "suspended":
      return " while the service is suspended";
    case "confirmation":
      return " for a read of the PipeScaling, because a pipe records a later generation of it";
    case "failure":
      return " because of the failure";
    case "window":
      return ` for the rollout window${window.open ? "" : `, which opens at ${formatTime(window.opensAtMs)}`}`;
    case "dry-runs":
      return " for dry runs of the pipes of the service";
    case "canary":
      return names === "" ? " for a first pipe to prove the size" : ` for ${names} to prove the size`;
    case "service-limit":
      return ` for ${names}, because the limit of concurrent resizes and rollouts is reached`;
    case "overall-limit":
      return " because the limit of concurrent rollouts across all services is reached";
    case "nothing":
      return "";
  }
}
