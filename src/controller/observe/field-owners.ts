import { CONTROLLER_FIELD_MANAGER } from "../../crd/names.ts";
import { isManagedBy, managedAtMs, managersOf } from "../../kube/managers.ts";
import { memoized } from "../../kube/memoized.ts";
import type { Deployment } from "../../kube/objects.ts";
import { parseTime } from "../../kube/time.ts";
import { LAST_ROLLOUT_ANNOTATION, SERVICE_LABEL } from "../names.ts";
import { type LastRollout, parseLastRollout, type WrittenRollout } from "./last-rollout.ts";

/*
 * The API server records in managedFields which writer last set each field. Annotations travel with copies of the
 * object; these records do not.
 */

type Metadata = Deployment["metadata"];

const SIZE_FIELDS = [
  ["f:requests", "f:cpu"],
  ["f:requests", "f:memory"],
  ["f:limits", "f:memory"],
];

const LAST_ROLLOUT_FIELDS = [["f:metadata", "f:annotations", `f:${LAST_ROLLOUT_ANNOTATION}`]];

/**
 * `kubectl rollout undo`, a restored backup and a writer that replaces whole objects bring back an older annotation.
 * The API server then records another manager for it, so it counts only while the controller manages it.
 *
 * @param written what the controller just wrote; if the annotation is the same, it is not parsed again
 */
export function ownLastRollout(
  { uid, annotations, managedFields }: Metadata,
  written?: WrittenRollout,
): LastRollout | undefined {
  if (!isManagedBy(CONTROLLER_FIELD_MANAGER, managedFields, LAST_ROLLOUT_FIELDS)) return undefined;
  const annotation = annotations?.[LAST_ROLLOUT_ANNOTATION];
  return annotation === written?.annotation ? written?.rollout : parseLastRollout(annotation, uid);
}

/**
 * When the controller resized a pipe without a last rollout that counts, in milliseconds since 1970. It still manages
 * resources of the container, or the annotation of another time, or of a deleted Deployment, names the same service.
 *
 * @param container to size, if it can be determined
 */
export function resizedAtMs(container: string | undefined, metadata: Metadata): number | undefined {
  const { annotations, labels, managedFields } = metadata;
  const fields = container === undefined ? [] : sizeFields(container);
  const managedAt = managedAtMs(managedFields, fields, CONTROLLER_FIELD_MANAGER);
  if (managedAt !== undefined) return managedAt;
  const copied = parseLastRollout(annotations?.[LAST_ROLLOUT_ANNOTATION]);
  if (!copied || copied.serviceId !== labels?.[SERVICE_LABEL]) return undefined;
  return Math.min(copied.startedAtMs, annotatedAtMs(metadata));
}

/** When the annotation was written, by the clock of the API server. Its text can hold any time, such as one to come. */
function annotatedAtMs({ creationTimestamp, managedFields }: Metadata): number {
  const times = managersOf(managedFields, LAST_ROLLOUT_FIELDS).map(
    (each) => managedAtMs(managedFields, LAST_ROLLOUT_FIELDS, each) ?? 0,
  );
  return Math.max(parseTime(creationTimestamp), ...times);
}

export function otherManagersOf(
  container: string,
  managedFields: Metadata["managedFields"],
): readonly string[] {
  const managers = managersOf(managedFields, sizeFields(container));
  return shared(...managers.filter((manager) => manager !== CONTROLLER_FIELD_MANAGER));
}

// Thousands of pipes have the same few field managers.
const shared = memoized((...managers: string[]): readonly string[] => managers);

/**
 * A size that happens to equal the CPU limit of the owner makes a container Guaranteed too. Then the request is ours and
 * the limit is not, and the limit must stay as it is.
 */
export function isGuaranteedByOwner(container: string, managedFields: Metadata["managedFields"]): boolean {
  const isOurs = (field: readonly string[]) =>
    isManagedBy(CONTROLLER_FIELD_MANAGER, managedFields, [resourcesField(container, field)]);
  return isOurs(["f:limits", "f:cpu"]) || !isOurs(["f:requests", "f:cpu"]);
}

const PAUSED = [["f:spec", "f:paused"]];

/**
 * When the controller paused a Deployment or wrote to it after that, in milliseconds since 1970. A pause by its owner,
 * or one that the owner confirmed, is not ours to lift, so it has no such time.
 */
export function pausedByControllerAtMs({ managedFields }: Metadata): number | undefined {
  const isOurs = managersOf(managedFields, PAUSED).every((manager) => manager === CONTROLLER_FIELD_MANAGER);
  return isOurs ? managedAtMs(managedFields, PAUSED, CONTROLLER_FIELD_MANAGER) : undefined;
}

const sizeFields = memoized((container: string): string[][] =>
  SIZE_FIELDS.map((field) => resourcesField(container, field)),
);

function resourcesField(container: string, field: readonly string[]): string[] {
  const item = `k:${JSON.stringify({ name: container })}`;
  return ["f:spec", "f:template", "f:spec", "f:containers", item, "f:resources", ...field];
}
