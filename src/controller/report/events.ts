import { API_VERSION, KIND } from "../../crd/names.ts";
import type { Condition, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { failureReason } from "../../crd/reasons.ts";
import type { Event } from "../../runtime/event-recorder.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { KINDS } from "../observe/workloads/kinds.ts";
import { allHaveSize } from "./conditions.ts";
import { describeFailure, newFailures } from "./failures.ts";
import { newFallbacks, newlyResized, type StatusChange } from "./resize-methods.ts";

/** The reason of the Event that is recorded for each commit. */
export const RESIZED_IN_PLACE = "ResizedInPlace";

type News = Pick<Event, "type" | "reason" | "note" | "suffix">;

/**
 * Returns the Events for a change of the status: few, for people, with the request ID. They are derived from the two
 * statuses, so a reconciliation that writes no status records none. The start of a rescale is not an Event: the status
 * reports it, and a thousand concurrent rescales would cost a thousand writes.
 */
export function eventsOf(change: StatusChange): Event[] {
  const { namespace, name, uid } = change.scaling.metadata;
  const regarding = { apiVersion: API_VERSION, kind: KIND, namespace, name, uid };
  const news = [failed, fellBack, completed, obstructed].flatMap((newsOf) => newsOf(change));
  return [...news.map((each) => ({ regarding, action: "Rescale", ...each })), ...resizedInPlace(change)];
}

/** An Event on the workload of a pipe. */
export function pipeEvent({ kind, metadata: { namespace, name, uid } }: PipeView, news: News): Event {
  const regarding = { apiVersion: KINDS[kind].resource.apiVersion, kind, namespace, name, uid };
  return { regarding, action: "Rescale", ...news };
}

function failed({ scaling, after }: StatusChange): News[] {
  return newFailures(scaling.status, after).map((failure) => ({
    type: "Warning",
    reason: failure.reason,
    note: describeFailure(failure),
    suffix: creditOf(after),
  }));
}

/** One Event for each reason, because many pipes have the same one. */
function fellBack({ scaling, after }: StatusChange): News[] {
  const added = newFallbacks(scaling.status, after);
  const known = new Set(
    after.pipes?.fallbacks?.filter((each) => !added.includes(each)).map(({ reason }) => reason),
  );
  const byReason = Map.groupBy(
    added.filter(({ reason }) => !known.has(reason)),
    ({ reason }) => reason,
  );
  return [...byReason.values()].map(([first, ...others]) => {
    const more = others.length === 0 ? "" : `; ${others.length} more fell back for the same reason`;
    const note = `Fell back to a rollout: ${first?.pipe}: ${first?.message}${more}`;
    return { type: "Normal", reason: "FellBackToRollout", note, suffix: creditOf(after) };
  });
}

function completed({ scaling, after, pipes }: StatusChange): News[] {
  const { desired, propagation } = after;
  const { completedAt } = propagation ?? {};
  if (!completedAt || completedAt === scaling.status.propagation?.completedAt) return [];
  if (!desired || pipes.length === 0) return [];
  const note = `${allHaveSize(pipes, desired.summary)}${creditOf(after)}.`;
  return [{ type: "Normal", reason: "Scaled", note }];
}

/**
 * The reason why nothing is resized if it is not about a pipe, such as a missing or malformed record. Failures of pipes
 * may be in the status besides it.
 */
function obstructed({ scaling, after }: StatusChange): News[] {
  const stalled = stalledOf(after);
  if (!stalled || stalledOf(scaling.status)?.reason === stalled.reason) return [];
  if (after.failures?.some(({ reason }) => failureReason(reason) === stalled.reason)) return [];
  return [{ type: "Warning", reason: stalled.reason, note: stalled.message }];
}

function stalledOf({ conditions }: PipeScalingStatus): Condition | undefined {
  return conditions?.find((each) => each.type === "Stalled" && each.status === "True");
}

/** Events on workloads, to explain why a template changed without a rollout. The limit of commits limits them, too. */
function resizedInPlace(change: StatusChange): Event[] {
  const { after } = change;
  const inPlace = newlyResized(change).filter(({ method }) => method === "InPlace");
  return inPlace.map(({ pipe, rollout: { replicas } }) => {
    const pods = replicas === 1 ? "1 pod" : `${replicas} pods`;
    const note = `Resized ${pods} in place to ${after.desired?.summary}, and updated the template without a rollout${creditOf(after)}.`;
    return pipeEvent(pipe, { type: "Normal", reason: RESIZED_IN_PLACE, note });
  });
}

function creditOf({ propagation }: PipeScalingStatus): string {
  return propagation?.requestId === undefined ? "" : ` (request ${propagation.requestId})`;
}
