/** Labels of the workloads that are pipes. */
export const SERVICE_LABEL = "pipes.clouddb.dev/service";
export const TYPE_LABEL = "pipes.clouddb.dev/type";
export const DATABASE_TYPE = "database";

/** Set by people on a pipe and on its pod template: the name of the container to resize, if there are several. */
export const CONTAINER_ANNOTATION = "pipes.clouddb.dev/container";

/** Set by the controller on a pipe: JSON of `LastRollout` (observe/last-rollout.ts). */
export const LAST_ROLLOUT_ANNOTATION = "pipes.clouddb.dev/last-rollout";

/** Set by Kubernetes on a Deployment: the number of its pod template; each new template gets a higher one. */
export const REVISION_ANNOTATION = "deployment.kubernetes.io/revision";

/** Set by Kubernetes on ReplicaSets and their pods: identifies the pod template. */
export const TEMPLATE_HASH_LABEL = "pod-template-hash";

/**
 * Set by Kubernetes on the pods of StatefulSets: the name of the ControllerRevision with their template. The controller
 * changes it, too, when it commits a size or replaces pods.
 */
export const REVISION_HASH_LABEL = "controller-revision-hash";

/** Set by people on a PipeScaling: failed pipes are retried no later than at this time, if it is after the failure. */
export const RETRY_ANNOTATION = "pipes.clouddb.dev/retry-requested-at";

/** Longer messages are cut in an annotation; the status has more of them. */
export const MAX_ANNOTATED_MESSAGE = 400;

/** Held by the leader, in the namespace of the records. */
export const LEASE_NAME = "pipe-scaling-controller";
