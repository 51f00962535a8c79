/** Label that identifies ConfigMaps and Secrets as records, and names their kind. */
export const RESOURCE_LABEL = "pipes.clouddb.dev/resource";
export const ORGANIZATION_LABEL = "pipes.clouddb.dev/organization";

/** The kinds of records that are ConfigMaps. */
export const RECORD_KINDS = ["organization", "service", "members", "backup", "key-usage"] as const;

export type RecordKind = (typeof RECORD_KINDS)[number];

export const API_KEY_SECRET_TYPE = "pipes.clouddb.dev/api-key";

/** Returns the kind of the ConfigMap with these labels; `undefined` if it is no record. */
export function recordKindOf(labels: Readonly<Record<string, string>> | undefined): RecordKind | undefined {
  return RECORD_KINDS.find((kind) => kind === labels?.[RESOURCE_LABEL]);
}

export function recordLabels(kind: RecordKind | "api-key", organizationId: string): Record<string, string> {
  return { [RESOURCE_LABEL]: kind, [ORGANIZATION_LABEL]: organizationId };
}
