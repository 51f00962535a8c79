import type { FieldsV1, ManagedFields } from "./objects.ts";

/** Returns the field managers that own at least one of the fields. @param ways path of each field in `fieldsV1` */
export function managersOf(
  managedFields: readonly ManagedFields[] = [],
  ways: readonly (readonly string[])[],
): string[] {
  return [...new Set(owning(managedFields, ways).flatMap(({ manager }) => manager ?? []))];
}

/** When a field manager last wrote, in milliseconds since 1970; `undefined` if it owns none of the fields. */
export function managedAtMs(
  managedFields: readonly ManagedFields[] = [],
  ways: readonly (readonly string[])[],
  manager: string,
): number | undefined {
  const times = owning(managedFields, ways)
    .filter((entry) => entry.manager === manager)
    .map(({ time }) => Date.parse(time ?? "") || 0);
  return times.length === 0 ? undefined : Math.max(...times);
}

function owning(
  managedFields: readonly ManagedFields[],
  ways: readonly (readonly string[])[],
): readonly ManagedFields[] {
  return managedFields.filter(({ fieldsV1 }) => ways.some((way) => hasField(fieldsV1, way)));
}

function hasField(fields: FieldsV1 | undefined, way: readonly string[]): boolean {
  return way.reduce((at: FieldsV1 | undefined, step) => at?.[step], fields) !== undefined;
}
