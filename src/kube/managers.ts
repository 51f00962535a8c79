import type { FieldsV1, ManagedFields } from "./objects.ts";

/** Returns the field managers that own at least one of the fields. @param ways path of each field in `fieldsV1` */
export function managersOf(
  managedFields: readonly ManagedFields[] = [],
  ways: readonly (readonly string[])[],
): string[] {
  const owning = managedFields.filter(({ fieldsV1 }) => ways.some((way) => hasField(fieldsV1, way)));
  return [...new Set(owning.flatMap(({ manager }) => manager ?? []))];
}

function hasField(fields: FieldsV1 | undefined, way: readonly string[]): boolean {
  return way.reduce((at: FieldsV1 | undefined, step) => at?.[step], fields) !== undefined;
}
