import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { failureReason, type Reason } from "../../crd/reasons.ts";
import { describeSize } from "../../domain/size.ts";
import type { DesiredSize } from "../../domain/tier.ts";
import type { Assessment } from "../decide/assessment.ts";
import { failuresOf } from "../decide/decide.ts";
import { describeFailure } from "../decide/failure.ts";
import type { Sizing } from "../decide/sizing.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { formatTime, nameList } from "./text.ts";
import { waitingFor } from "./waiting.ts";

/** Reason and message of the conditions: one word for programs and one sentence for people. */
export interface ConditionSummary {
  readonly ready: "True" | "False" | "Unknown";
  /** If not ready: whether it needs intervention, or only time. */
  readonly stalled: boolean;
  readonly reason: Reason;
  readonly message: string;
}

const MOST_REMARKS = 1;

/** In order of importance for people: the first that applies wins. */
export function summarizeConditions(
  scaling: PipeScalingView,
  tier: Snapshot["tier"],
  sizing: Sizing | undefined,
): ConditionSummary {
  if (!tier.ok) return { ready: "False", stalled: true, ...tier.obstacle };
  if (!sizing)
    return {
      ready: "False",
      stalled: false,
      reason: "Deleting",
      message: "The PipeScaling is being deleted.",
    };
  const progress = [progressOf(sizing), ...remarksOf(sizing)].join(" ");
  if (scaling.spec.suspend) {
    return { ready: "Unknown", stalled: false, reason: "Suspended", message: `Suspended: ${progress}` };
  }
  const failures = failuresOf({ sizing });
  const [worst] = failures;
  if (worst)
    return {
      ready: "False",
      // Failed writes are retried automatically.
      stalled: sizing.assessments.some(({ state }) => state === "failed" || state === "unsizable"),
      reason: failureReason(worst.reason),
      message: failureMessage(worst, failures, progress, scaling),
    };
  if (sizing.assessments.every((each) => each.state === "done"))
    return readyConditions(sizing.desired, progress);
  return {
    ready: "False",
    stalled: false,
    ...(isWaitingForWindow(sizing) ? { reason: "WaitingForWindow" } : { reason: "Progressing" }),
    message: [progress, underWay(sizing), malformedMessage(scaling)].filter((part) => part !== "").join(" "),
  };
}

function readyConditions({ source }: DesiredSize, progress: string): ConditionSummary {
  return source === "TierLimit"
    ? {
        ready: "True",
        stalled: false,
        reason: "TierLimited",
        message: `${progress} The spec requests more than the organization's tier allows.`,
      }
    : { ready: "True", stalled: false, reason: "Scaled", message: progress };
}

function progressOf({ desired, assessments }: Sizing): string {
  const size = describeSize(desired.size);
  const done = assessments.filter((each) => each.state === "done").length;
  if (assessments.length === 0) return `The service has no database pipes; a new one gets ${size}.`;
  if (done === assessments.length) return `${allRun(done)} ${size}.`;
  return `${done} of ${assessments.length} pipes run ${size}.`;
}

function remarksOf({ assessments }: Sizing): string[] {
  const remarks = assessments.flatMap(({ remark }) => remark ?? []);
  const more = remarks.length - MOST_REMARKS;
  return [
    ...remarks.slice(0, MOST_REMARKS),
    ...(more > 0 ? [`There are remarks on ${more} more ${more === 1 ? "pipe" : "pipes"}.`] : []),
  ];
}

/** Returns the start of a sentence. */
export function allRun(pipes: number): string {
  return pipes === 1 ? "The one pipe runs" : `All ${pipes} pipes run`;
}

function underWay(sizing: Sizing): string {
  const { assessments } = sizing;
  const named = (state: Assessment["state"]) =>
    assessments.filter((each) => each.state === state).map((each) => each.pipe.metadata.name);
  const waiting = assessments.filter((each) => each.state === "waiting").length;
  const obstructed = assessments.flatMap(({ pipe, obstacle }) =>
    obstacle === undefined ? [] : sentence(`${pipe.metadata.name} fits no node at present: ${obstacle}`),
  );
  const [obstacle = ""] = obstructed;
  return [
    listed("Rolling", named("rolling")),
    obstacle,
    listed("Paused by their owner", named("paused")),
    waiting > 0 ? `${waiting} waiting${waitingFor(sizing)}.` : "",
  ]
    .filter((part) => part !== "")
    .join(" ");
}

function failureMessage(
  worst: PipeFailure,
  failures: readonly PipeFailure[],
  progress: string,
  scaling: PipeScalingView,
): string {
  const others = listed(
    "Also failed",
    failures.slice(1).map((each) => each.pipe),
  );
  const next =
    worst.nextRetryAt === undefined
      ? ""
      : `Attempt ${worst.attempts}; the next one is at ${formatTime(Date.parse(worst.nextRetryAt))}.`;
  const retry = malformedMessage(scaling);
  return [sentence(describeFailure(worst)), next, progress, others, retry]
    .filter((part) => part !== "")
    .join(" ");
}

function malformedMessage({ malformedAnnotations }: PipeScalingView): string {
  const [name] = malformedAnnotations;
  return name === undefined
    ? ""
    : `The annotation ${name} is not a valid time: write it as 2026-01-31T12:00:00Z.`;
}

/** Conditions of a service without rollouts or failures. */
function isWaitingForWindow({ assessments, holdBack }: Sizing): boolean {
  return holdBack === "window" && assessments.every(({ state }) => state !== "rolling");
}

function sentence(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}

function listed(title: string, names: readonly string[]): string {
  return names.length === 0 ? "" : `${title}: ${nameList(names)}.`;
}
