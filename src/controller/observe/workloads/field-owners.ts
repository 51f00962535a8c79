import { isGuaranteed } from "../../../capacity/pod-requests.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../crd/names.ts";
import { isManagedBy, isUnmanaged, managedAtMs, managersOf } from "../../../kube/managers.ts";
import { memoized, shared } from "../../../kube/memoized.ts";
import type { ObjectMeta } from "../../../kube/objects.ts";
import type { Container } from "../../../kube/pods.ts";
import { parseTime } from "../../../kube/time.ts";
import { LAST_ROLLOUT_ANNOTATION, SERVICE_LABEL } from "../../names.ts";
import { type LastRollout, parseLastRollout } from "../last-rollout.ts";

/*
 * The API server records in managedFields which writer last set each field. Annotations travel with copies of the
 * object; these records do not.
 */

type ResourceField = readonly [list: "requests" | "limits", resource: "cpu" | "memory"];

const SIZE_FIELDS: readonly ResourceField[] = [
  ["requests", "cpu"],
  ["requests", "memory"],
  ["limits", "memory"],
];

const CPU_LIMIT: ResourceField = ["limits", "cpu"];

export const LAST_ROLLOUT: readonly string[] = [
  "f:metadata",
  "f:annotations",
  `f:${LAST_ROLLOUT_ANNOTATION}`,
];

const LAST_ROLLOUT_FIELDS = [LAST_ROLLOUT];

/**
 * `kubectl rollout undo`, a restored backup and a writer that replaces whole objects bring back an older annotation.
 * The API server then records another manager for it, so it counts only while the controller manages it. If a writer
 * has reset managedFields, nothing but the UID in the annotation shows whose it is.
 */
export function ownLastRollout({ uid, annotations, managedFields }: ObjectMeta): LastRollout | undefined {
  const isOurs = isManagedBy(CONTROLLER_FIELD_MANAGER, managedFields, LAST_ROLLOUT_FIELDS);
  if (!isOurs && !isUnmanaged(managedFields)) return undefined;
  return parseLastRollout(annotations?.[LAST_ROLLOUT_ANNOTATION], uid);
}

/**
 * When the controller resized a pipe whose annotation does not count, in milliseconds since 1970; `undefined` if
 * nothing shows that it did. Either the controller still manages resources of the container, or the annotation, which
 * is an earlier one or that of a deleted workload, names the same service.
 *
 * @param container to size, if it can be determined
 */
export function earlierResizeAtMs(container: string | undefined, metadata: ObjectMeta): number | undefined {
  const { annotations, creationTimestamp, labels, managedFields } = metadata;
  const managedAt = managedAtMs(managedFields, sizeFields(container), CONTROLLER_FIELD_MANAGER);
  if (managedAt !== undefined) return managedAt;
  const copied = parseLastRollout(annotations?.[LAST_ROLLOUT_ANNOTATION]);
  if (!copied || copied.serviceId !== labels?.[SERVICE_LABEL]) return undefined;
  // This time is by the clock of the API server. The text of an annotation can hold any time, even one in the future.
  const annotatedAtMs = managedAtMs(managedFields, LAST_ROLLOUT_FIELDS) ?? 0;
  return Math.min(copied.startedAtMs, Math.max(parseTime(creationTimestamp), annotatedAtMs));
}

const SERVICE_FIELDS = [["f:metadata", "f:labels", `f:${SERVICE_LABEL}`]];

/** When the writer of the service label last wrote, by the clock of the API server. */
export function labeledAtMs({ creationTimestamp, managedFields }: ObjectMeta): number {
  return managedAtMs(managedFields, SERVICE_FIELDS) ?? parseTime(creationTimestamp);
}

/** Returns the field managers other than ours that own a field of the size. */
export function otherManagersOf(
  container: string | undefined,
  managedFields: ObjectMeta["managedFields"],
): readonly string[] {
  const managers = managersOf(managedFields, sizeFields(container));
  return shared(managers.filter((manager) => manager !== CONTROLLER_FIELD_MANAGER));
}

/** Returns true if the controller owns each field of the size that the container has, or if nothing shows owners. */
export function ownsSize(
  container: Container | undefined,
  managedFields: ObjectMeta["managedFields"],
  limitFollows: boolean,
): boolean {
  if (!container || isUnmanaged(managedFields)) return true;
  return ownableFields(container, limitFollows).every((field) =>
    isManagedBy(CONTROLLER_FIELD_MANAGER, managedFields, [field]),
  );
}

/** Paths of the fields of the size that the container has. */
export function ownableFields(
  { name, resources = {} }: Container,
  limitFollows: boolean,
): readonly (readonly string[])[] {
  const fields = limitFollows ? [...SIZE_FIELDS, CPU_LIMIT] : SIZE_FIELDS;
  return fields
    .filter(([list, resource]) => resources[list]?.[resource] !== undefined)
    .map((field) => resourcesField(name, field));
}

/**
 * Returns true if the owner made the container Guaranteed: its CPU limit then follows the size, to keep the QoS class.
 * A size that happens to equal the CPU limit of the owner also makes a container Guaranteed. Then the controller
 * manages the request and not the limit, and the limit must stay as it is.
 */
export function cpuLimitFollows(
  container: Container | undefined,
  managedFields: ObjectMeta["managedFields"],
): boolean {
  if (!container || !isGuaranteed(container)) return false;
  const isOurs = (field: ResourceField) =>
    isManagedBy(CONTROLLER_FIELD_MANAGER, managedFields, [resourcesField(container.name, field)]);
  return isOurs(CPU_LIMIT) || !isOurs(["requests", "cpu"]);
}

export const PAUSED: readonly string[] = ["f:spec", "f:paused"];

/** The field with which the controller holds the pods of a StatefulSet. */
export const PARTITION: readonly string[] = ["f:spec", "f:updateStrategy", "f:rollingUpdate", "f:partition"];

/**
 * When the controller paused rollouts with this field, or wrote to the workload after that, in milliseconds since 1970.
 * `undefined` for a pause that the owner set, or set too, because the controller must not end it. If managedFields were
 * reset, the annotation shows whose pause it is.
 */
export function pausedByControllerAtMs(
  { managedFields }: ObjectMeta,
  lastRollout: LastRollout | undefined,
  path: readonly string[],
): number | undefined {
  const field = [path];
  if (isUnmanaged(managedFields)) return lastRollout?.isCommitting ? lastRollout.startedAtMs : undefined;
  const isOurs = managersOf(managedFields, field).every((manager) => manager === CONTROLLER_FIELD_MANAGER);
  return isOurs ? managedAtMs(managedFields, field, CONTROLLER_FIELD_MANAGER) : undefined;
}

const sizeFields = memoized((container?: string): string[][] =>
  container === undefined ? [] : SIZE_FIELDS.map((field) => resourcesField(container, field)),
);

function resourcesField(container: string, [list, resource]: ResourceField): string[] {
  const item = `k:${JSON.stringify({ name: container })}`;
  const path = ["f:spec", "f:template", "f:spec", "f:containers", item, "f:resources"];
  return [...path, `f:${list}`, `f:${resource}`];
}
