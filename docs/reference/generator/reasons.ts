import type { Reason } from "../../../src/api/cluster/reasons.ts";

export interface ReasonText {
  /** The condition of the PipeScaling with this reason; absent for reasons that only the API uses. */
  readonly shows?: "Ready" | "Reconciling" | "Stalled" | "Suspended";
  readonly meaning: string;
  readonly remedy: string;
}

/** The delays are those of src/controller/timeouts.ts. */
const RETRIED = "The controller retries automatically after 5 minutes, doubling to an hour";
const NOT_RECREATED = "but a pipe that stops its old pods first only on request";
const RECORDS = "Fix the record; the controller continues as soon as it sees the change.";

/** Meaning and remedy of each reason, for operators. The type requires an entry for every reason. */
export const REASON_TEXTS: Readonly<Record<Reason, ReasonText>> = {
  Pending: {
    meaning: "The controller has not reported on the size yet.",
    remedy:
      "Wait a few seconds. If the reason persists, check whether a controller is running: [PipeScalingNoLeader](../runbooks/PipeScalingNoLeader.md).",
  },
  Progressing: {
    shows: "Reconciling",
    meaning:
      "Pipes are being resized or wait for their turn, or the templates of resized pods follow; the message names them.",
    remedy: "Wait. A pipe that does not come up within `controller.config.rolloutTimeout` fails.",
  },
  WaitingForWindow: {
    shows: "Reconciling",
    meaning:
      "Pipes wait for the rollout window of the service or its organization; the message has the time at which it opens.",
    remedy: "Wait, or [roll out immediately](../how-to/rollout-windows.md#roll-out-outside-of-the-window).",
  },
  WaitingForOwner: {
    shows: "Reconciling",
    meaning:
      "The pipes that are left are StatefulSets whose owner keeps pods from rollouts, with the update strategy `OnDelete` or a `partition`; the message names the first one.",
    remedy:
      "Set `spec.updateStrategy.type` to `RollingUpdate`, or lower the partition. The controller changes neither.",
  },
  Scaled: {
    shows: "Ready",
    meaning: "Every pod and every pod template of every pipe has the desired size.",
    remedy: "Nothing.",
  },
  TierLimited: {
    shows: "Ready",
    meaning: "Every pipe runs the maximum size of the organization's tier; the spec requests more.",
    remedy: "Request a smaller size, or move the organization to a larger tier.",
  },
  Suspended: {
    shows: "Suspended",
    meaning: "`spec.suspend` is true, so the controller does not change the pipes.",
    remedy: "Set `spec.suspend` to false.",
  },
  Deleting: {
    shows: "Reconciling",
    meaning:
      "The PipeScaling is being deleted. This resizes no pipe; if the service has pipes, the controller creates it again with their size.",
    remedy:
      "Wait. If the reason persists, a finalizer blocks the deletion: `kubectl get psc <service> -o yaml` shows it.",
  },
  Unschedulable: {
    shows: "Stalled",
    meaning:
      "A pipe whose rollout stops old pods first (strategy Recreate, maxSurge 0, or maxUnavailable of all replicas) has a new pod that fits no node, although its old pods have ended. It was rolled back.",
    remedy:
      "Free or add capacity, then request a retry. The controller does not retry automatically, because each attempt stops the pipe.",
  },
  NoNodeLargeEnough: {
    shows: "Stalled",
    meaning:
      "The pipe requests more CPU or memory than any node that it may run on has. Its rollout would stop old pods first, or it was to be resized in place. Its pods were not touched; the message has its request and the largest of these nodes.",
    remedy: `Request a smaller size, or add a larger node. ${RETRIED}. A requested retry skips this check.`,
  },
  NoNodeHasRoom: {
    shows: "Stalled",
    meaning:
      "A pipe whose rollout stops old pods first would get a pod for which no node has room at present, the room of its old pods included. Its pods were not touched. If a resize in place waits for room on the node of the pod, it goes on waiting, and succeeds as soon as there is room.",
    remedy:
      "Free or add capacity, or request a smaller size. The controller looks for room again after a minute, doubling to 10 minutes. A requested retry of a rollout skips this check.",
  },
  ProgressDeadlineExceeded: {
    shows: "Stalled",
    meaning:
      "The new pods of a pipe did not come up within `progressDeadlineSeconds` of the Deployment. The pipe was rolled back.",
    remedy: `Check the events and logs of the pod. ${RETRIED}, ${NOT_RECREATED}.`,
  },
  RolloutTimeout: {
    shows: "Stalled",
    meaning:
      "The new pods of a pipe did not come up within `controller.config.rolloutTimeout`, or the longer time that the Deployment allows. The pipe was rolled back.",
    remedy: `Check the events and logs of the pod. ${RETRIED}, ${NOT_RECREATED}.`,
  },
  RolloutFailed: {
    shows: "Stalled",
    meaning: "A pipe was rolled back from the size, and the cause is no longer known.",
    remedy: `${RETRIED}, ${NOT_RECREATED}.`,
  },
  FailedCreate: {
    shows: "Stalled",
    meaning:
      "Kubernetes cannot create the new pods of a pipe, for example because of a quota or a policy, for 30 s or while the pipe has no pod left.",
    remedy: `Fix the error of Kubernetes, which is in the message. ${RETRIED}, ${NOT_RECREATED}.`,
  },
  ReplicaFailure: {
    shows: "Stalled",
    meaning: "Same as FailedCreate, but Kubernetes reports no reason.",
    remedy: `${RETRIED}, ${NOT_RECREATED}.`,
  },
  Refused: {
    shows: "Stalled",
    meaning:
      "The API server rejects the Deployment with this size, because it is invalid or a policy denies it; or it rejects the size for running pods because of a quota or a LimitRange, so new pods would be rejected too; or a webhook changes other fields in each write of the controller. Nothing was restarted.",
    remedy: `Fix what the message names: it has the error of the API server and, if the controller knows it, the remedy. ${RETRIED}.`,
  },
  WriteFailed: {
    shows: "Reconciling",
    meaning:
      "The last write to a pipe, its pods or its ReplicaSet failed in the API server or an admission webhook, or the kube-controller-manager did not respond; the message has the error. Pods that were resized in place keep the size.",
    remedy:
      "The controller retries automatically after a second, doubling to 5 minutes. If the reason persists, check the webhook that the message names, or the kube-controller-manager.",
  },
  Forbidden: {
    shows: "Reconciling",
    meaning:
      "The service account of the controller has no permission to write a pipe; the message has the error.",
    remedy:
      "Restore the permission with `helm upgrade`, and `--force-conflicts` if somebody changed it. The controller retries automatically as for WriteFailed.",
  },
  CpuLimitTooLow: {
    shows: "Stalled",
    meaning: "The container of a pipe has a CPU limit below the size, and is not Guaranteed.",
    remedy: "Remove `limits.cpu` from the chart or manifest of the pipe, or set it to at least the size.",
  },
  NotResizedInPlace: {
    shows: "Stalled",
    meaning:
      "With the strategy `InPlace`, a pipe could not be resized in place for as long as a rollout may take, or a container restarted during the resize. Its pods were not replaced. The message has the [reason](../explanation/in-place.md#reasons-for-a-rollout).",
    remedy:
      "Fix the reason, or set `spec.strategy: InPlaceOrRollout`. The pipe is resized as soon as that is possible; after a restart of a container, only for another size, another pod template or a requested retry.",
  },
  FieldConflict: {
    shows: "Stalled",
    meaning:
      "Another writer, an admission webhook or a VerticalPodAutoscaler also sets the size of the pipe or of its pods, or removes the annotation of the controller; the message names it if it is known. While the controller still repairs pods, Reconciling is True instead of Stalled.",
    remedy:
      "Omit `requests.cpu`, `requests.memory` and `limits.memory` of the container in the chart or manifest of the pipe; in a VerticalPodAutoscaler, set the mode `Off` for the container. Exempt the pipe from a tool that resizes pods, or name it in `controller.config.toleratedResizers` if it returns them to their size by itself. Then request a retry.",
  },
  OutOfMemory: {
    shows: "Stalled",
    meaning:
      "Containers of the service were OOM-killed twice within 10 minutes of a resize in place to a smaller memory. All pipes of the service were returned to their previous size in place; `status.effective` has it, and the message names the pod.",
    remedy:
      "Request a size with more memory. If the program is configured for less memory now, request a retry. The controller does not retry automatically.",
  },
  ContainerUnclear: {
    shows: "Stalled",
    meaning: "The pod has several containers, and no annotation names the pipe container.",
    remedy: "Name the container in the annotation `pipes.clouddb.dev/container` of the Deployment.",
  },
  UnknownService: {
    shows: "Stalled",
    meaning: "The service that the PipeScaling is named after has no record.",
    remedy: "Create the service with `pipe-scaling admin service create`, or delete the PipeScaling.",
  },
  UnknownOrganization: {
    shows: "Stalled",
    meaning: "The record of the service names an organization that has no record.",
    remedy: RECORDS,
  },
  UnknownTier: {
    shows: "Stalled",
    meaning: "The record of the organization names a tier that is not in `tiers` of the chart.",
    remedy: RECORDS,
  },
  MalformedRecord: {
    shows: "Stalled",
    meaning: "The record of the service or its organization is malformed; the message has the error.",
    remedy: RECORDS,
  },
  WrongNamespace: {
    shows: "Stalled",
    meaning: "The PipeScaling is not in the namespace of the service's pipes. It has no effect.",
    remedy: "Request the size in the namespace that the message names, and delete this PipeScaling.",
  },
  Failed: {
    meaning: "A pipe failed for a reason that the API does not know.",
    remedy: "Read the message in the conditions of the PipeScaling.",
  },
};
