/** Label that identifies ConfigMaps and Secrets as records, and names their kind. */
export const RESOURCE_LABEL = "pipes.clouddb.dev/resource";
export const ORGANIZATION_LABEL = "pipes.clouddb.dev/organization";

export const API_KEY_SECRET_TYPE = "pipes.clouddb.dev/api-key";

/** @param kind the value of the label of the kind: `api-key`, or a key of `RECORD_KINDS` */
export function recordLabels(kind: string, organizationId: string): Record<string, string> {
  return { [RESOURCE_LABEL]: kind, [ORGANIZATION_LABEL]: organizationId };
}
