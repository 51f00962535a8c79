import { FAILURE_REASON_TABLE } from "./failure-reasons.ts";
import { STATE_REASON_TABLE } from "./state-reasons.ts";

/** The texts of all reasons that the controller writes into the conditions of a status. */
export const REASON_TABLE = { ...STATE_REASON_TABLE, ...FAILURE_REASON_TABLE };

export type Reason = keyof typeof REASON_TABLE;
export type FailureReason = keyof typeof FAILURE_REASON_TABLE;

export const FAILURE_REASONS = Object.keys(FAILURE_REASON_TABLE).filter(isFailureReason);

function isFailureReason(text: string): text is FailureReason {
  return Object.hasOwn(FAILURE_REASON_TABLE, text);
}

/** Parses the reason in a status or an annotation. Unknown ones, of a later version, become `RolloutFailed`. */
export function failureReason(text: string): FailureReason {
  return isFailureReason(text) ? text : "RolloutFailed";
}
