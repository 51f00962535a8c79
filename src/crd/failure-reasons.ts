import type { ReasonEntry } from "./state-reasons.ts";

const OPERATORS = "The configuration of the service is wrong: ask the operator of this API to correct it.";
const NOT_UP = "The pipe did not become available with this size in time.";
/** The delays are those of src/controller/timeouts.ts. */
const RETRIED = "The controller retries automatically after 5 minutes, doubling to an hour";
const RETRIED_OR_ON_REQUEST = `${RETRIED}. A pipe that stops its old pods first is retried only on request.`;
const RECORDS = "Fix the record; the controller continues as soon as it sees the change.";

/** Reasons of failures of pipes and services. They are also label values of a metric. */
export const FAILURE_REASON_TABLE = {
  Unschedulable: {
    sentence: "There is currently no room for the pipe at this size.",
    shows: "Stalled",
    meaning:
      "A pipe whose rollout stops old pods first (a StatefulSet, or a Deployment with the strategy Recreate, maxSurge 0, or maxUnavailable of all replicas) has a new pod that fits no node, although its old pods have ended. It was rolled back.",
    remedy:
      "Free or add capacity, then request a retry. The controller does not retry automatically, because each attempt stops the pipe.",
  },
  NoNodeLargeEnough: {
    sentence: "At this size, the pipe is too large for the machines that it may run on.",
    shows: "Stalled",
    meaning:
      "The pipe requests more CPU or memory than any node that it may run on has. Its rollout would stop old pods first, or it was to be resized in place. Its pods were not touched; the message has its request and the largest of these nodes.",
    remedy: `Request a smaller size, or add a larger node. ${RETRIED}. A requested retry skips this check.`,
  },
  NoNodeHasRoom: {
    sentence: "There is currently no room for the pipe at this size.",
    shows: "Stalled",
    meaning:
      "A pipe whose rollout stops old pods first needs a new pod, and no node has room for it at present, even without the old pods. Its pods were not touched. If a resize in place waits for room on the node of the pod, it continues to wait, and succeeds as soon as there is room.",
    remedy:
      "Free or add capacity, or request a smaller size. The controller looks for room again after a minute, doubling to 10 minutes. A requested retry of a rollout skips this check.",
  },
  ProgressDeadlineExceeded: {
    sentence: NOT_UP,
    shows: "Stalled",
    meaning:
      "The new pods of a pipe did not become available within `progressDeadlineSeconds` of the Deployment. The pipe was rolled back.",
    remedy: `Check the events and logs of the pod. ${RETRIED_OR_ON_REQUEST}`,
  },
  RolloutTimeout: {
    sentence: NOT_UP,
    shows: "Stalled",
    meaning:
      "The new pods of a Deployment, or the next pods of a StatefulSet, did not become available within `controller.config.rolloutTimeout`, or the longer time that the workload allows. The pipe was rolled back.",
    remedy: `Check the events and logs of the pod. ${RETRIED_OR_ON_REQUEST}`,
  },
  RolloutFailed: {
    sentence: "The pipe did not become available with this size.",
    shows: "Stalled",
    meaning: "A pipe was rolled back from the size, and the cause is no longer known.",
    remedy: `Check the Events and logs of the pipe. ${RETRIED_OR_ON_REQUEST}`,
  },
  FailedCreate: {
    sentence: "The pipe could not be started with this size.",
    shows: "Stalled",
    meaning:
      "Kubernetes cannot create the new pods of a pipe, for example because of a quota or a policy. This counts as a failure after 30 s, or at once if the pipe has no pod left.",
    remedy: `Fix the error of Kubernetes, which is in the message. ${RETRIED_OR_ON_REQUEST}`,
  },
  ReplicaFailure: {
    sentence: "The pipe could not be started with this size.",
    shows: "Stalled",
    meaning:
      "Kubernetes reports a problem with the pods of a pipe other than `FailedCreate`, such as `FailedDelete`. It counts as a failure after the same time.",
    remedy: `Fix what \`kubectl describe\` shows for the ReplicaSet. ${RETRIED_OR_ON_REQUEST}`,
  },
  Refused: {
    sentence: "This size is not allowed for the pipe.",
    shows: "Stalled",
    meaning:
      "The API server rejects the Deployment or the StatefulSet with this size, because it is invalid or a policy denies it; or it rejects the size for running pods because of a quota or a LimitRange, so new pods would be rejected too; or a webhook changes other fields in each write of the controller; or the name of a StatefulSet has more than 52 characters, so it can get no other size at all. Nothing was restarted.",
    remedy: `Fix what the message names: it has the error of the API server and, if the controller knows it, the remedy. ${RETRIED}. A StatefulSet whose name is too long must be created again with a shorter one.`,
  },
  WriteFailed: {
    sentence: "The last attempt to apply this size to the pipe failed; it will be retried.",
    shows: "Reconciling",
    meaning:
      "The last write to a pipe, its pods or its ReplicaSet failed in the API server or an admission webhook, or the kube-controller-manager did not respond; the message has the error. Pods that were resized in place keep the size.",
    remedy:
      "The controller retries automatically after a second, doubling to 5 minutes; if the kube-controller-manager did not respond, after a minute, doubling to 10 minutes. If the reason persists, check the webhook that the message names, or the kube-controller-manager.",
  },
  Forbidden: {
    sentence: OPERATORS,
    shows: "Reconciling",
    meaning:
      "The service account of the controller has no permission to write a pipe, or no longer to watch StatefulSets; the message has the error.",
    remedy:
      "Restore the permission with `helm upgrade`, and `--force-conflicts` if somebody changed it. The controller retries automatically as for WriteFailed.",
  },
  CpuLimitTooLow: {
    sentence: "The CPU limit of the pipe is below this size.",
    shows: "Stalled",
    meaning:
      "The container of a pipe has a CPU limit below the size. The limit does not follow the size, as it does if the owner made the container Guaranteed.",
    remedy: "Remove `limits.cpu` from the chart or manifest of the pipe, or set it to at least the size.",
  },
  NotResizedInPlace: {
    sentence:
      "The pipe cannot get this size without a restart, and it must not restart, or not before a size is requested.",
    shows: "Stalled",
    meaning:
      "With the strategy `InPlace`, or before a size was requested for a pipe that ran before it got its labels, the pipe could not be resized in place for as long as a rollout may take, or a container restarted during the resize. Its pods were not replaced. The message has the [reason](../explanation/in-place.md#reasons-for-a-rollout).",
    remedy:
      "Fix the reason, set `spec.strategy: InPlaceOrRollout`, or, if the message says that no size was requested, [request one](../how-to/take-over-pipes.md#know-the-size). The pipe is resized as soon as that is possible; after a restart of a container, only for another size, another pod template or a requested retry.",
  },
  FieldConflict: {
    sentence: "Another program also sets the size of this pipe, and keeps reverting it.",
    shows: "Stalled",
    meaning:
      "Another writer, an admission webhook or a VerticalPodAutoscaler also sets the size of the pipe or of its pods, or removes the annotation of the controller; the message names it if it is known. While the controller still repairs pods, Reconciling is True instead of Stalled.",
    remedy:
      "Omit `requests.cpu`, `requests.memory` and `limits.memory` of the container in the chart or manifest of the pipe; in a VerticalPodAutoscaler, set the mode `Off` for the container. Exempt the pipe from a tool that resizes pods, or name it in `controller.config.toleratedResizers` if it returns them to their size by itself. Then request a retry, which also writes a removed annotation again.",
  },
  OutOfMemory: {
    sentence:
      "The pipes ran out of memory at this size, so they get their previous size again: request a larger size.",
    shows: "Stalled",
    meaning:
      "Containers of the service were OOM-killed twice within 10 minutes of a resize in place to a smaller memory. All pipes of the service were returned to their previous size, limited by the maximum of the tier, in place if possible; `status.effective` has it, and the message names the pod of the last kill.",
    remedy:
      "Request a size with more memory. If you have configured the program to use less memory since then, request a retry. The controller does not retry automatically.",
  },
  ContainerUnclear: {
    sentence: "It is unclear which container of the pipe the size applies to.",
    shows: "Stalled",
    meaning:
      "The pod has several containers and no annotation names the pipe container, or the annotation names a container that does not exist.",
    remedy:
      "Name the container in the annotation `pipes.clouddb.dev/container` of the Deployment or the StatefulSet.",
  },
  UnknownService: {
    sentence: OPERATORS,
    shows: "Stalled",
    meaning: "The service that the PipeScaling is named after has no record.",
    remedy:
      "Create the service with `pipe-scaling admin service create --id`, with the name of the PipeScaling as the ID, or delete the PipeScaling.",
  },
  UnknownOrganization: {
    sentence: OPERATORS,
    shows: "Stalled",
    meaning: "The record of the service names an organization that has no record.",
    remedy: RECORDS,
  },
  UnknownTier: {
    sentence: OPERATORS,
    shows: "Stalled",
    meaning: "The record of the organization names a tier that is not in `tiers` of the chart.",
    remedy:
      "Add the tier to `tiers`, or fix the record; the controller continues as soon as it sees the change.",
  },
  MalformedRecord: {
    sentence: OPERATORS,
    shows: "Stalled",
    meaning: "The record of the service or its organization is malformed; the message has the error.",
    remedy: RECORDS,
  },
  WrongNamespace: {
    sentence: OPERATORS,
    shows: "Stalled",
    meaning:
      "The PipeScaling, or a pipe, is not in the namespace that the record of the service names. The controller ignores it.",
    remedy:
      "Request the size in the namespace that the message names, and delete this PipeScaling. Correct the label of the pipe, or create it in that namespace and delete this one.",
  },
} as const satisfies Readonly<Record<string, ReasonEntry>>;
