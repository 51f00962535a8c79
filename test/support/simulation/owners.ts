import { LAST_ROLLOUT_ANNOTATION } from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { FieldsV1, ManagedFields } from "../../../src/kube/objects.ts";

type Part = "annotation" | "size" | "paused";

const FIELDS: Readonly<Record<Part, FieldsV1>> = {
  annotation: { "f:metadata": { "f:annotations": { [`f:${LAST_ROLLOUT_ANNOTATION}`]: {} } } },
  paused: { "f:spec": { "f:paused": {} } },
  size: {
    "f:spec": {
      "f:template": {
        "f:spec": {
          "f:containers": { 'k:{"name":"pipe"}': { "f:resources": { "f:requests": { "f:cpu": {} } } } },
        },
      },
    },
  },
};

/** The controller's entries in managedFields after it has set these parts; it keeps those that it had. */
export function ownedWith(
  before: readonly ManagedFields[] | undefined,
  parts: readonly Part[],
  time: string,
): ManagedFields[] {
  const written = parts.map((part) => ({
    manager: CONTROLLER_FIELD_MANAGER,
    operation: "Update",
    time,
    fieldsV1: FIELDS[part],
  }));
  return [...ownedWithout(before, parts), ...written];
}

/** The entries after the owner of the Deployment has applied a part, which others may own too. */
export function ownedByOwner(
  before: readonly ManagedFields[] = [],
  part: Part,
  time: string,
): readonly ManagedFields[] {
  return [...before, { manager: "owner", operation: "Apply", time, fieldsV1: FIELDS[part] }];
}

/** The controller's entries after another writer has set or removed these parts. */
export function ownedWithout(
  before: readonly ManagedFields[] = [],
  parts: readonly Part[],
): readonly ManagedFields[] {
  const gone = parts.map((part) => JSON.stringify(FIELDS[part]));
  return before.filter(({ fieldsV1 }) => !gone.includes(JSON.stringify(fieldsV1)));
}
