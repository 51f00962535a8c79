import { elapsedMs } from "../../runtime/elapsed.ts";
import type { WriteError } from "../observe/write-record.ts";

/** A write that is repeated, with growing delays, until it succeeds or is not necessary any more. */
export type RepeatedStep = "delete-replica-set" | "restore-replica-set" | "resume";

/** The last failure of such a write to a Deployment or its ReplicaSets. Times are in milliseconds since 1970. */
export interface FailedStep {
  readonly type: RepeatedStep;
  readonly error: WriteError;
  /** Number of consecutive failures. */
  readonly attempts: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

/** After this time without an attempt, a failure says nothing about the next one. It exceeds every delay. */
const EXPIRY_MS = 15 * 60_000;

/** Returns the failure of a step unless it is of an earlier time. */
export function currentFailure(
  failed: FailedStep | undefined,
  type: RepeatedStep | undefined,
  nowMs: number,
): FailedStep | undefined {
  if (!failed || failed.type !== type) return undefined;
  return elapsedMs(failed.lastAtMs, nowMs) < EXPIRY_MS ? failed : undefined;
}

/** @param step a step of a resize in place, or its action */
export function repeatedStepOf(step: {
  readonly type: string;
  readonly restoreReplicaSet?: unknown;
}): RepeatedStep | undefined {
  if (step.type === "delete-replica-set" || step.type === "resume") return step.type;
  return step.type === "fall-back" && step.restoreReplicaSet ? "restore-replica-set" : undefined;
}
