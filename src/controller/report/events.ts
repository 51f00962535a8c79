import { API_VERSION, KIND } from "../../crd/names.ts";
import type { Condition, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import type { Event } from "../../runtime/event-recorder.ts";
import { describeFailure, newFailures } from "../decide/failure.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import { allRun } from "./conditions.ts";

/**
 * Returns the Events for a change of the status: few, for people, with the request ID. They are derived from the two
 * statuses, so a reconciliation that writes no status records none. The start of a rescale is not an Event: the status
 * reports it, and a thousand concurrent rescales would cost a thousand writes.
 */
export function eventsOf(
  { metadata }: PipeScalingView,
  before: PipeScalingStatus,
  after: PipeScalingStatus,
): Event[] {
  const { namespace, name, uid } = metadata;
  const regarding = { apiVersion: API_VERSION, kind: KIND, namespace, name, uid };
  return [...failed(before, after), completed(before, after), obstructed(before, after)]
    .filter((each) => each !== undefined)
    .map((each) => ({ regarding, action: "Rescale", ...each }));
}

type News = Pick<Event, "type" | "reason" | "note" | "suffix"> | undefined;

function completed(before: PipeScalingStatus, after: PipeScalingStatus): News {
  const { desired, pipes, propagation } = after;
  const isNew =
    propagation?.completedAt !== undefined && propagation.completedAt !== before.propagation?.completedAt;
  if (!isNew || !desired || !pipes || pipes.total === 0) return undefined;
  const note = `${allRun(pipes.total)} ${desired.summary}${creditOf(propagation)}.`;
  return { type: "Normal", reason: "Scaled", note };
}

function failed(before: PipeScalingStatus, after: PipeScalingStatus): News[] {
  return newFailures(before, after).map((failure) => ({
    type: "Warning",
    reason: failure.reason,
    note: describeFailure(failure),
    suffix: creditOf(after.propagation),
  }));
}

/** Returns true if Stalled has a reason that is not about a pipe, such as a missing or malformed record. */
function obstructed(before: PipeScalingStatus, after: PipeScalingStatus): News {
  const stalled = stalledOf(after);
  if (!stalled || after.failures?.length || stalledOf(before)?.reason === stalled.reason) return undefined;
  return { type: "Warning", reason: stalled.reason, note: stalled.message };
}

function stalledOf({ conditions }: PipeScalingStatus): Condition | undefined {
  return conditions?.find((each) => each.type === "Stalled" && each.status === "True");
}

function creditOf(propagation: PipeScalingStatus["propagation"]): string {
  return propagation?.requestId === undefined ? "" : ` (request ${propagation.requestId})`;
}
