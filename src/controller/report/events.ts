import { API_VERSION, KIND } from "../../crd/names.ts";
import type { Condition, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { DEPLOYMENTS } from "../../kube/paths.ts";
import type { Event } from "../../runtime/event-recorder.ts";
import { describeFailure, newFailures } from "../decide/failure.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import { allRun } from "./conditions.ts";
import { newFallbacks, newInPlace } from "./resize-methods.ts";

/**
 * Returns the Events for a change of the status: few, for people, with the request ID. They are derived from the two
 * statuses, so a reconciliation that writes no status records none. The start of a rescale is not an Event: the status
 * reports it, and a thousand concurrent rescales would cost a thousand writes.
 */
export function eventsOf(
  { metadata }: PipeScalingView,
  before: PipeScalingStatus,
  after: PipeScalingStatus,
  pipes: readonly DeploymentView[] = [],
): Event[] {
  const { namespace, name, uid } = metadata;
  const regarding = { apiVersion: API_VERSION, kind: KIND, namespace, name, uid };
  const news = [
    ...failed(before, after),
    ...fellBack(before, after),
    completed(before, after),
    obstructed(before, after),
  ];
  const resized = new Set(newInPlace(before, after));
  return [
    ...news.filter((each) => each !== undefined).map((each) => ({ regarding, action: "Rescale", ...each })),
    ...pipes
      .filter((pipe) => resized.has(pipe.metadata.name) && pipe.lastRollout?.scalingUid === uid)
      .map((pipe) => resizedInPlace(pipe, after)),
  ];
}

/** One for each reason, because it is the same for many pipes. */
function fellBack(before: PipeScalingStatus, after: PipeScalingStatus): News[] {
  const added = newFallbacks(before, after);
  const known = new Set(
    after.pipes?.fallbacks?.filter((each) => !added.includes(each)).map(({ reason }) => reason),
  );
  const byReason = Map.groupBy(added, ({ reason }) => reason);
  return [...byReason]
    .filter(([reason]) => !known.has(reason))
    .map(([, [first, ...others]]) => {
      const more = others.length === 0 ? "" : `; so did ${others.length} more for this reason`;
      const note = `Fell back to a rollout: ${first?.pipe}: ${first?.message}${more}`;
      return { type: "Normal", reason: "FellBackToRollout", note, suffix: creditOf(after.propagation) };
    });
}

/** On the Deployment, which explains why its template changed without a rollout. The pace of commits limits them. */
function resizedInPlace({ metadata, lastRollout }: DeploymentView, after: PipeScalingStatus): Event {
  const { namespace, name, uid } = metadata;
  const replicas = lastRollout?.replicas ?? 0;
  const pods = replicas === 1 ? "1 pod" : `${replicas} pods`;
  return {
    regarding: { apiVersion: DEPLOYMENTS.apiVersion, kind: "Deployment", namespace, name, uid },
    ...{ action: "Rescale", type: "Normal", reason: "ResizedInPlace" },
    note: `Resized ${pods} in place to ${after.desired?.summary}, and updated the template without a rollout${creditOf(after.propagation)}.`,
  };
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
