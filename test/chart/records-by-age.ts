import { randomUUID } from "node:crypto";
import type { KubeObject } from "../../src/kube/objects.ts";

/**
 * A patch by which the record of the first of several editors becomes older than a new record, and those of all others
 * younger. If there are more than ten then, and the new one has the name ancient-changes, the API server loses it when it
 * merges the two oldest. The second editor has to send it, because the API server ignores a change of times alone.
 */
export function withOneOlder({ managedFields = [] }: KubeObject["metadata"]): object {
  const records = managedFields.map((each) => ({
    ...each,
    time: each.manager === "editor-0" ? "2001-01-01T00:00:00Z" : "2100-01-01T00:00:00Z",
  }));
  return { metadata: { managedFields: records, annotations: { "example.com/a1": randomUUID() } } };
}
