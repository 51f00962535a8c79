/** Reasons of conditions that report no failure. */
const STATE_REASONS = [
  "Progressing",
  "WaitingForWindow",
  "WaitingForOwner",
  "Scaled",
  "TierLimited",
  "Suspended",
  "Deleting",
] as const;

/** Reasons of failures of pipes and services. They are also label values of a metric. */
export const FAILURE_REASONS = [
  "Unschedulable",
  "NoNodeLargeEnough",
  "NoNodeHasRoom",
  "ProgressDeadlineExceeded",
  "RolloutTimeout",
  "RolloutFailed",
  "FailedCreate",
  "ReplicaFailure",
  "Refused",
  "WriteFailed",
  "Forbidden",
  "CpuLimitTooLow",
  "NotResizedInPlace",
  "FieldConflict",
  "OutOfMemory",
  "ContainerUnclear",
  "UnknownService",
  "UnknownOrganization",
  "UnknownTier",
  "MalformedRecord",
  "WrongNamespace",
] as const;

export type FailureReason = (typeof FAILURE_REASONS)[number];

/** All reasons that the controller writes into a status. */
export type Reason = (typeof STATE_REASONS)[number] | FailureReason;

/** Parses the reason in a status or an annotation. A later version may have written an unknown one. */
export function failureReason(text: string): FailureReason {
  return FAILURE_REASONS.find((reason) => reason === text) ?? "RolloutFailed";
}
