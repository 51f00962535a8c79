import type { Reason as ApiReason } from "../../../src/api/cluster/reasons.ts";
import type { Obstacle } from "../../../src/controller/observe/snapshot.ts";

export type Reason = ApiReason | Obstacle["reason"];

export interface ReasonText {
  /** How the conditions of the PipeScaling stand; none where only the API says the word. */
  readonly shows?: "Ready" | "Reconciling" | "Stalled" | "Suspended";
  readonly meaning: string;
  readonly remedy: string;
}

/** The waits are those of src/controller/decide/retry.ts. */
const RETRIED = "It is tried again by itself after 5 minutes, doubling to an hour";
const NOT_RECREATED = "a pipe that stops its old pods first only when you ask for it";
const RECORDS = "Put the record right; the service goes on as soon as that is seen.";

/** What each word means to who runs the pipes. None can be forgotten: the types say which there are. */
export const REASON_TEXTS: Readonly<Record<Reason, ReasonText>> = {
  Pending: {
    meaning: "The controller has not reported on the size yet.",
    remedy:
      "Wait some seconds. If it lasts, see whether a controller is at work: [PipeScalingNoLeader](../runbooks/PipeScalingNoLeader.md).",
  },
  Progressing: {
    shows: "Reconciling",
    meaning: "Pipes are on their way to the size or wait for their turn; the message names them.",
    remedy: "Wait. A pipe that does not come up within `controller.config.rolloutTimeout` becomes a failure.",
  },
  WaitingForWindow: {
    shows: "Reconciling",
    meaning:
      "Pipes wait for the rollout window of the service or its organization; the message says when it opens.",
    remedy:
      "Wait, or see [how to roll out at once](../how-to/rollout-windows.md#roll-out-outside-of-the-window).",
  },
  Scaled: {
    shows: "Ready",
    meaning: "Every pipe runs the desired size, by a completed rollout.",
    remedy: "Nothing.",
  },
  TierLimited: {
    shows: "Ready",
    meaning: "Every pipe runs the largest size of the organization's tier; the spec asks for more.",
    remedy: "Ask for less, or give the organization a larger tier.",
  },
  Suspended: {
    shows: "Suspended",
    meaning: "`spec.suspend` is true: the pipes are left as they are.",
    remedy: "Set `spec.suspend` to false.",
  },
  Deleting: {
    shows: "Reconciling",
    meaning:
      "Somebody deletes the PipeScaling. No pipe is resized by that; where there are pipes it comes back with their size.",
    remedy: "Wait. If it lasts, a finalizer holds it: `kubectl get psc <service> -o yaml` names it.",
  },
  Unschedulable: {
    shows: "Stalled",
    meaning:
      "A pipe whose rollout stops old pods first (strategy Recreate, maxSurge 0, or maxUnavailable of all replicas) has a new pod that fits no node: it was rolled back at once.",
    remedy: "Make room, then ask for it again. It is not tried by itself, because each try stops the pipe.",
  },
  ProgressDeadlineExceeded: {
    shows: "Stalled",
    meaning:
      "The new pods of a pipe did not come up within the Deployment's `progressDeadlineSeconds`: it was rolled back.",
    remedy: `See why in the pod's events and logs. ${RETRIED}, ${NOT_RECREATED}.`,
  },
  RolloutTimeout: {
    shows: "Stalled",
    meaning:
      "The new pods of a pipe did not come up within `controller.config.rolloutTimeout`: it was rolled back.",
    remedy: `See why in the pod's events and logs. ${RETRIED}, ${NOT_RECREATED}.`,
  },
  RolloutFailed: {
    shows: "Stalled",
    meaning: "A pipe was rolled back from the size, and the reason is not known any more.",
    remedy: `${RETRIED}, ${NOT_RECREATED}.`,
  },
  FailedCreate: {
    shows: "Stalled",
    meaning:
      "Kubernetes may not make the new pods of a pipe, for a quota or a policy, for 30 s or with no pod left.",
    remedy: `The message has Kubernetes' words. ${RETRIED}, ${NOT_RECREATED}.`,
  },
  ReplicaFailure: {
    shows: "Stalled",
    meaning: "As FailedCreate, where Kubernetes gives no reason of its own.",
    remedy: `${RETRIED}, ${NOT_RECREATED}.`,
  },
  Refused: {
    shows: "Stalled",
    meaning:
      "The API server refuses the Deployment with this size: it is not valid, or a policy is against it.",
    remedy: `The message has its words. ${RETRIED}.`,
  },
  WriteFailed: {
    shows: "Reconciling",
    meaning:
      "The API server or an admission webhook did not do the last write to a pipe; the message has its words.",
    remedy:
      "It is tried again by itself after a second, doubling to 5 minutes. If it lasts, look at the webhook that the message names.",
  },
  Forbidden: {
    shows: "Reconciling",
    meaning: "The controller's account may not write a pipe; the message has the API server's words.",
    remedy: "Grant the permission again: install the chart anew. It is tried again as after WriteFailed.",
  },
  CpuLimitTooLow: {
    shows: "Stalled",
    meaning: "The container of a pipe has a CPU limit below the size, and is not Guaranteed.",
    remedy: "Remove `limits.cpu` from what deploys the pipe, or set it to at least the size.",
  },
  FieldConflict: {
    shows: "Stalled",
    meaning:
      "Something else sets the size of the pipe too, or removes the controller's annotation: another writer, an admission webhook or a VerticalPodAutoscaler; the message names it if it is known.",
    remedy:
      "Leave `requests.cpu`, `requests.memory` and `limits.memory` of the container out of what deploys the pipe; in a VerticalPodAutoscaler, set the mode `Off` for the container.",
  },
  ContainerUnclear: {
    shows: "Stalled",
    meaning: "The pod has several containers, and none is named as the pipe's.",
    remedy: "Name it by the annotation `pipes.clouddb.dev/container` of the Deployment.",
  },
  UnknownService: {
    shows: "Stalled",
    meaning: "There is no record of the service that the PipeScaling is named after.",
    remedy: "`pipe-scaling admin service create`, or remove the PipeScaling.",
  },
  UnknownOrganization: {
    shows: "Stalled",
    meaning: "The service's record names an organization that has no record.",
    remedy: RECORDS,
  },
  UnknownTier: {
    shows: "Stalled",
    meaning: "The organization's record names a tier that the chart's `tiers` do not have.",
    remedy: RECORDS,
  },
  MalformedRecord: {
    shows: "Stalled",
    meaning: "The record of the service or of its organization cannot be read; the message says why.",
    remedy: RECORDS,
  },
  WrongNamespace: {
    shows: "Stalled",
    meaning:
      "The pipes of the service run in another namespace than the PipeScaling is in. It changes nothing.",
    remedy: "Move the PipeScaling to the namespace that the message names.",
  },
  Failed: {
    meaning: "A pipe failed for a reason that the API has no words for.",
    remedy: "The PipeScaling's own message says more.",
  },
};
