/** Parts of the operations on the pipes of a service. */

export const SCALING_PATH = "/v1/organizations/{organizationId}/services/{serviceId}/pipesCdcScaling";

export const NO_PIPE = "no database pipe has ever been provisioned on the service";

/** The refusals of operations that read the PipeScaling of a service. */
export const READ_REFUSALS = {
  400: `An ID in the path is not a UUID, or ${NO_PIPE}.`,
  404: "The organization does not exist, or the key belongs to another one; or it has no such service.",
} as const;
