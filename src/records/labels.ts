/** Label that identifies ConfigMaps and Secrets as records, and names their kind. */
export const RESOURCE_LABEL = "pipes.clouddb.dev/resource";
export const ORGANIZATION_LABEL = "pipes.clouddb.dev/organization";

export type RecordKind = "organization" | "service" | "members" | "backup" | "key-usage";

export const API_KEY_SECRET_TYPE = "pipes.clouddb.dev/api-key";

export function recordLabels(kind: RecordKind | "api-key", organizationId: string): Record<string, string> {
  return { [RESOURCE_LABEL]: kind, [ORGANIZATION_LABEL]: organizationId };
}
