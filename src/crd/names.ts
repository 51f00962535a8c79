export const GROUP = "pipes.clouddb.dev";
export const VERSION = "v1beta1";
export const API_VERSION = `${GROUP}/${VERSION}`;
export const KIND = "PipeScaling";
export const PLURAL = "pipescalings";

/** Set by people on a PipeScaling: until this time, rollouts also start outside the rollout window. */
export const IGNORE_WINDOW_ANNOTATION = `${GROUP}/ignore-rollout-window-until`;

/** Managers of fields, as `kubectl get -o yaml --show-managed-fields` names them. */
export const API_FIELD_MANAGER = "pipe-scaling-api";
export const CONTROLLER_FIELD_MANAGER = "pipe-scaling-controller";

/** The resource in paths of the API server, in the shape of kube/paths.ts. */
export const PIPE_SCALINGS = { apiVersion: API_VERSION, plural: PLURAL };
