import type { Reason as CrdReason } from "../../crd/reasons.ts";

/**
 * The reasons for the state of a rescale, each with the sentence that the API returns. Messages from the cluster may
 * name other tenants, nodes and quotas, so the API never returns them (docs/adr/0017).
 */

const OPERATORS = "The configuration of the service is wrong: ask the operator of this API to correct it.";
const NOT_UP = "The pipe did not come up with this size in time.";

const SENTENCES: Readonly<Record<Reason, string>> = {
  Pending: "The size has been accepted but not applied to any pipe yet.",
  Progressing: "The size is being applied to the pipes, a few at a time.",
  Scaled: "Every pipe runs the size.",
  WaitingForWindow: "The pipes wait for the rollout window of the service.",
  WaitingForOwner: "The pipes wait for the team that runs them, which restarts them by itself.",
  TierLimited:
    "Every pipe runs the largest size of the organization's tier, which is smaller than the requested size.",
  Suspended: "Scaling of this service is suspended: the pipes keep their size until it is resumed.",
  Deleting: "The service is being set up again.",
  Unschedulable: "There is currently no room for the pipe at this size.",
  NoNodeHasRoom: "There is currently no room for the pipe at this size.",
  NoNodeLargeEnough: "At this size, the pipe is too large for the machines that it may run on.",
  ProgressDeadlineExceeded: NOT_UP,
  RolloutTimeout: NOT_UP,
  RolloutFailed: "The pipe did not come up with this size.",
  FailedCreate: "The pipe could not be started with this size.",
  ReplicaFailure: "The pipe could not be started with this size.",
  Refused: "This size is not allowed for the pipe.",
  WriteFailed: "The last attempt to apply this size to the pipe failed; it will be retried.",
  Forbidden: OPERATORS,
  CpuLimitTooLow: "The CPU limit of the pipe is below this size.",
  NotResizedInPlace: "The pipe cannot get this size without a restart, and it is configured not to restart.",
  FieldConflict: "Another program also sets the size of this pipe, and keeps reverting it.",
  OutOfMemory:
    "The pipes ran out of memory at this size, so they have their previous size again: request a larger size.",
  ContainerUnclear: "The container of the pipe that the size applies to is ambiguous.",
  UnknownService: OPERATORS,
  UnknownOrganization: OPERATORS,
  UnknownTier: OPERATORS,
  MalformedRecord: OPERATORS,
  WrongNamespace: OPERATORS,
  Failed: "The size could not be applied to the pipe.",
};

/** The reasons of the controller, `Pending` before its first report, and `Failed` for a reason of a later version. */
export type Reason = CrdReason | "Pending" | "Failed";

export const REASONS = Object.keys(SENTENCES).filter(isReason);

function isReason(text: string): text is Reason {
  return Object.hasOwn(SENTENCES, text);
}

/** Returns the reason, or `Failed` if this version does not know it. */
export function reasonOf(text: string): Reason {
  return REASONS.find((reason) => reason === text) ?? "Failed";
}

export function sentenceOf(reason: Reason): string {
  return SENTENCES[reason];
}
