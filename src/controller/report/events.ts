import { API_VERSION, KIND } from "../../crd/names.ts";
import type { Condition, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import type { Event } from "../../runtime/event-recorder.ts";
import { describeFailure, newFailures } from "../decide/failure.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import { allRun } from "./conditions.ts";

/**
 * What is worth an Event in the step from one status to the next: few, for people, with the request id.
 * Derived from the statuses, so that a reconciliation that writes none records nothing. The start of a rescale is no
 * Event: the status reports it, and a thousand at once would cost a thousand writes.
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

/** Stalled for a reason that lies with no pipe: a record that is missing or malformed. */
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
