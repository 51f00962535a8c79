import type { FieldsV1, ManagedFields } from "./objects.ts";
import { parseTime } from "./time.ts";

/** Returns the field managers that own at least one of the fields. @param paths path of each field in `fieldsV1` */
export function managersOf(
  managedFields: readonly ManagedFields[] = [],
  paths: readonly (readonly string[])[],
): string[] {
  return [...new Set(owning(managedFields, paths).flatMap(({ manager }) => manager ?? []))];
}

/** Returns true if a field manager owns at least one of the fields. */
export function isManagedBy(
  manager: string,
  managedFields: readonly ManagedFields[] = [],
  paths: readonly (readonly string[])[],
): boolean {
  return managedFields.some((entry) => entry.manager === manager && owns(entry, paths));
}

/**
 * Returns when the owners of the fields last changed any field that they own, in milliseconds since 1970. `undefined`
 * if the fields have no owner.
 *
 * @param manager considers only this owner
 */
export function managedAtMs(
  managedFields: readonly ManagedFields[] = [],
  paths: readonly (readonly string[])[],
  manager?: string,
): number | undefined {
  const times = owning(managedFields, paths)
    .filter((entry) => manager === undefined || entry.manager === manager)
    .map(({ time }) => parseTime(time));
  return times.length === 0 ? undefined : Math.max(...times);
}

/**
 * Returns true if a writer has reset managedFields. After that, the API server records no managers until one applies
 * the object, so nothing shows who owns a field.
 */
export function isUnmanaged(managedFields: readonly ManagedFields[] = []): boolean {
  return managedFields.every(({ fieldsV1 }) => fieldsV1 === undefined);
}

function owning(
  managedFields: readonly ManagedFields[],
  paths: readonly (readonly string[])[],
): readonly ManagedFields[] {
  return managedFields.filter((entry) => owns(entry, paths));
}

function owns({ fieldsV1 }: ManagedFields, paths: readonly (readonly string[])[]): boolean {
  return paths.some((path) => hasField(fieldsV1, path));
}

function hasField(fields: FieldsV1 | undefined, path: readonly string[]): boolean {
  return path.reduce((at: FieldsV1 | undefined, step) => at?.[step], fields) !== undefined;
}
