import { describeSize, sameSize } from "../../domain/size.ts";
import type { Action } from "../actions.ts";
import type { Assessment, Failure } from "../assessment.ts";
import type { MemoryShortage } from "../in-place/out-of-memory.ts";
import type { OutOfMemory } from "../observe/last-rollout.ts";
import { nameOf } from "../observe/pipe-kind.ts";
import { dueAtMs, failureOf, retriedAt, retryAtMs, unlessOrdinary } from "../retry.ts";
import { adopt } from "../rollout/repair.ts";
import type { Sizing } from "./decision.ts";

/*
 * A service that ran out of memory with the requested size gets the previous one in the ordinary way. Its status still
 * reports about the requested size.
 */

/** The annotation of one pipe has the reason first, so that the next controller goes on. */
export function recordShortage(
  { outOfMemory, unrecorded }: MemoryShortage,
  { assessments }: Sizing,
): readonly Action[] {
  const { subject } = assessments.find(({ pipe }) => pipe === unrecorded) ?? {};
  const { lastRollout } = subject?.pipe ?? {};
  return subject && lastRollout ? adopt(subject, { ...lastRollout, outOfMemory }) : [];
}

/** The pipes that have the previous size do not have the requested one: one failed, and the others wait. */
export function reportShortage(sizing: Sizing): Sizing {
  const { outOfMemory, assessments } = sizing;
  const named = assessments.find(({ pipe }) => nameOf(pipe) === outOfMemory?.pipe) ?? assessments[0];
  if (!outOfMemory || !named) return sizing;
  const isOver = assessments.every(({ state }) => state === "done");
  const reported = assessments.map((each) => {
    const assessment = withReportedState(each, each === named && isOver ? "failed" : "waiting");
    return each === named ? withFailure(assessment, outOfMemory) : assessment;
  });
  if (!isOver || sizing.waitReason !== "nothing") return { ...sizing, assessments: reported };
  return { ...sizing, assessments: reported, waitReason: "failure", blockedBy: [nameOf(named.pipe)] };
}

/** The actions are decided already. @param whenDone the state of a pipe whose pods and template have the previous size */
function withReportedState(assessment: Assessment, whenDone: "failed" | "waiting"): Assessment {
  const { next: _, activity, ...reported } = assessment;
  switch (assessment.state) {
    case "done":
      return { ...reported, state: whenDone };
    case "resized":
      return { ...reported, state: "rolling", ...(activity === undefined ? {} : { activity }) };
    default:
      return assessment;
  }
}

function withFailure(assessment: Assessment, outOfMemory: OutOfMemory): Assessment {
  const { subject, pipe, recheckAtMs } = assessment;
  const { atMs, previous } = outOfMemory;
  const { desired } = subject;
  // The maximum of the tier may change after the message was recorded.
  const limit = sameSize(desired, previous) ? "" : `; the tier limits them to ${describeSize(desired)}`;
  const message = `${outOfMemory.message}${limit}`;
  const retryMs = retryAtMs(atMs, Number.POSITIVE_INFINITY, subject);
  const shortage: Failure = retriedAt(retryMs, { reason: "OutOfMemory", message, attempts: 1, atMs });
  const record = subject.writes.get(pipe.metadata.uid, "adopt");
  const unrecorded = unlessOrdinary(failureOf(record, dueAtMs(record, subject)));
  const failure = assessment.failure ?? unrecorded ?? shortage;
  if (!Number.isFinite(retryMs)) return { ...assessment, failure };
  return { ...assessment, failure, recheckAtMs: Math.min(recheckAtMs ?? retryMs, retryMs) };
}
