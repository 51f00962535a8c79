/** Labels and annotations of the pipes' Deployments (design, sections 4 and 5). */
export const SERVICE_LABEL = "pipes.clouddb.dev/service";
export const TYPE_LABEL = "pipes.clouddb.dev/type";
export const DATABASE_TYPE = "database";

/** Set by people: which container is the pipe, where there are several. */
export const CONTAINER_ANNOTATION = "pipes.clouddb.dev/container";

/** Set by the controller: the size last given, such as `4000m/16Gi`; JSON if it was put back to what is none. */
export const GIVEN_SIZE_ANNOTATION = "pipes.clouddb.dev/given-size";
/** Set by the controller, in the same way: what completed last, known when the next size was given. */
export const COMPLETED_SIZE_ANNOTATION = "pipes.clouddb.dev/completed-size";
/** Set by the controller: JSON of `Attempt` (attempt.ts). */
export const ATTEMPT_ANNOTATION = "pipes.clouddb.dev/attempt";

/** Set by people on a PipeScaling: failed pipes are tried again at this time if it is after the failure. */
export const RETRY_ANNOTATION = "pipes.clouddb.dev/retry-requested-at";

/** Held by the controller that is at work, in the namespace of records. */
export const LEASE_NAME = "pipe-scaling-controller";
