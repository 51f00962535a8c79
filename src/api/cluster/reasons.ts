/**
 * Why a rescale is where it is: the word that the controller has for it, and what a caller is told. The
 * cluster's own words may name other tenants, nodes and quotas, so they are never passed on (docs/adr/0017).
 */

const OPERATORS = "Whoever operates this API must put right how the service is set up.";
const NOT_UP = "The pipe did not come up with this size in time.";

const SENTENCES = {
  Pending: "The size has been accepted, and no pipe has been given it yet.",
  Progressing: "The pipes are being given the size, a few at a time.",
  Scaled: "Every pipe runs the size.",
  TierLimited:
    "Every pipe runs the largest size of the organization's tier, which is less than was asked for.",
  Suspended: "Scaling of this service is suspended: the pipes are left as they are until it is resumed.",
  Deleting: "The service is being set up anew.",
  Unschedulable: "There is no room for the pipe at this size at present.",
  ProgressDeadlineExceeded: NOT_UP,
  RolloutTimeout: NOT_UP,
  RolloutFailed: "The pipe did not come up with this size.",
  FailedCreate: "The pipe could not be started with this size.",
  ReplicaFailure: "The pipe could not be started with this size.",
  Refused: "The pipe may not be given this size.",
  FieldContest: "Something else sets the size of this pipe too, and takes it back.",
  ContainerUnclear: "Which part of the pipe the size is for is not clear.",
  UnknownService: OPERATORS,
  UnknownOrganization: OPERATORS,
  UnknownTier: OPERATORS,
  MalformedRecord: OPERATORS,
  WrongNamespace: OPERATORS,
  Failed: "The pipe could not be given this size.",
} as const;

export type Reason = keyof typeof SENTENCES;

export const REASONS = Object.keys(SENTENCES).filter(isReason);

function isReason(text: string): text is Reason {
  return Object.hasOwn(SENTENCES, text);
}

/** A word of ours; of another, which a cluster may have, that it failed. */
export function reasonOf(text: string): Reason {
  return REASONS.find((reason) => reason === text) ?? "Failed";
}

export function sentenceOf(reason: Reason): string {
  return SENTENCES[reason];
}
