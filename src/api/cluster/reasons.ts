import type { Reason as CrdReason } from "../../crd/reasons.ts";

/**
 * The reasons for the state of a rescale: the controller's word for each, and the sentence that the API returns. The
 * cluster's own messages may name other tenants, nodes and quotas, so the API never returns them (docs/adr/0017).
 */

const OPERATORS = "The configuration of the service is wrong: ask the operator of this API to correct it.";
const NOT_UP = "The pipe did not come up with this size in time.";

const SENTENCES: Readonly<Record<Reason, string>> = {
  Pending: "The size has been accepted, and no pipe has been given it yet.",
  Progressing: "The pipes are being given the size, a few at a time.",
  Scaled: "Every pipe runs the size.",
  WaitingForWindow: "The pipes wait for the rollout window of the service.",
  TierLimited:
    "Every pipe runs the largest size of the organization's tier, which is smaller than the requested size.",
  Suspended: "Scaling of this service is suspended: the pipes are left as they are until it is resumed.",
  Deleting: "The service is being set up anew.",
  Unschedulable: "There is no room for the pipe at this size at present.",
  NoNodeLargeEnough: "The pipe is too large at this size for the machines that it may run on.",
  ProgressDeadlineExceeded: NOT_UP,
  RolloutTimeout: NOT_UP,
  RolloutFailed: "The pipe did not come up with this size.",
  FailedCreate: "The pipe could not be started with this size.",
  ReplicaFailure: "The pipe could not be started with this size.",
  Refused: "The pipe may not be given this size.",
  WriteFailed: "The last attempt to give the pipe this size failed; it is repeated.",
  Forbidden: OPERATORS,
  CpuLimitTooLow: "The CPU limit of the pipe is below this size.",
  FieldConflict: "Another program also sets the size of this pipe, and keeps reverting it.",
  ContainerUnclear: "The container of the pipe that the size applies to is ambiguous.",
  UnknownService: OPERATORS,
  UnknownOrganization: OPERATORS,
  UnknownTier: OPERATORS,
  MalformedRecord: OPERATORS,
  WrongNamespace: OPERATORS,
  Failed: "The pipe could not be given this size.",
};

/** Those of the controller; `Pending` before it has reported, and `Failed` for one of a later version. */
export type Reason = CrdReason | "Pending" | "Failed";

export const REASONS = Object.keys(SENTENCES).filter(isReason);

function isReason(text: string): text is Reason {
  return Object.hasOwn(SENTENCES, text);
}

/** The known reason, or `Failed` for one that this version does not know. */
export function reasonOf(text: string): Reason {
  return REASONS.find((reason) => reason === text) ?? "Failed";
}

export function sentenceOf(reason: Reason): string {
  return SENTENCES[reason];
}
