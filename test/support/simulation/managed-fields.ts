import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { FieldsV1, KubeObject, ManagedFields } from "../../../src/kube/objects.ts";
import { isSame } from "./objects.ts";

/** The writer of an object, as `managedFields` names it. */
export interface Writer {
  readonly manager: string;
  /** Server-side apply instead of an update or patch. */
  readonly operation?: "Update" | "Apply";
  readonly subresource?: string;
}

/** The owner of a workload. */
export const OWNER: Writer = { manager: "owner" };
/** The controller under test. */
export const CONTROLLER: Writer = { manager: CONTROLLER_FIELD_MANAGER };

/** The values of the fields of an object, by path in JSON. */
type Leaves = ReadonlyMap<string, unknown>;

/**
 * Returns `metadata.managedFields` after a write, as the API server does: a writer owns the fields that it changes, and
 * with server-side apply also those that it applied unchanged.
 *
 * @param before absent if the writer creates the object
 * @param applied paths of the fields that the writer applied (`fieldPath`)
 */
export function managedFieldsAfter(
  before: KubeObject | undefined,
  after: KubeObject,
  writer: Writer,
  time: string,
  applied: readonly string[] = [],
): readonly ManagedFields[] | undefined {
  const known = before?.metadata.managedFields ?? [];
  // Updates of an object whose managedFields were reset record nothing.
  if (before && known.length === 0 && writer.operation !== "Apply") return undefined;
  const [old, now] = [before ? leavesOf(before) : new Map<string, unknown>(), leavesOf(after)];
  const changed = [...now.keys()].filter((path) => !old.has(path) || !isSame(old.get(path), now.get(path)));
  const removed = [...old.keys()].filter((path) => !now.has(path));
  if (changed.length + removed.length + applied.length === 0) return known;
  const gone = new Set([...changed, ...removed]);
  const isOwn = (entry: ManagedFields) => keyOf(entry) === keyOf(writer);
  const own = new Set([...pathsOf(known.find(isOwn)?.fieldsV1), ...changed, ...applied]);
  for (const path of removed) own.delete(path);
  return [
    ...known.filter((entry) => !isOwn(entry)).flatMap((entry) => without(entry, gone)),
    ...(own.size === 0 ? [] : [entryOf(writer, time, own)]),
  ];
}

/** A field as it is named in `fieldsV1`. */
export function fieldPath(...path: readonly string[]): string {
  return JSON.stringify(path);
}

function keyOf({ manager, operation = "Update", subresource = "" }: ManagedFields | Writer): string {
  return JSON.stringify([manager, operation, subresource]);
}

function entryOf(
  { manager, operation = "Update", subresource }: Writer,
  time: string,
  paths: ReadonlySet<string>,
): ManagedFields {
  return {
    manager,
    operation,
    time,
    fieldsV1: treeOf(paths),
    ...(subresource === undefined ? {} : { subresource }),
  };
}

function without(entry: ManagedFields, gone: ReadonlySet<string>): ManagedFields[] {
  const paths = pathsOf(entry.fieldsV1);
  const kept = paths.filter((path) => !gone.has(path));
  if (kept.length === paths.length) return [entry];
  return kept.length === 0 ? [] : [{ ...entry, fieldsV1: treeOf(new Set(kept)) }];
}

function leavesOf(object: KubeObject & { readonly spec?: unknown }): Leaves {
  const leaves = new Map<string, unknown>();
  const { labels, annotations } = object.metadata;
  addLeaves(leaves, ["f:metadata", "f:labels"], labels);
  addLeaves(leaves, ["f:metadata", "f:annotations"], annotations);
  addLeaves(leaves, ["f:spec"], object.spec);
  return leaves;
}

function addLeaves(leaves: Map<string, unknown>, path: readonly string[], value: unknown): void {
  if (value === undefined) return;
  if (Array.isArray(value) && value.every((item) => nameOf(item) !== undefined)) {
    for (const item of value) {
      const key = `k:${JSON.stringify({ name: nameOf(item) })}`;
      addLeaves(leaves, [...path, key], item);
    }
  } else if (isFilledMap(value)) {
    for (const [key, inner] of Object.entries(value)) addLeaves(leaves, [...path, `f:${key}`], inner);
  } else leaves.set(fieldPath(...path), value);
}

/** An empty map is a field of its own. */
function isFilledMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function nameOf(item: unknown): unknown {
  return typeof item === "object" && item !== null && "name" in item ? item.name : undefined;
}

function treeOf(paths: Iterable<string>): FieldsV1 {
  const groups = new Map<string, string[]>();
  for (const path of paths) {
    const [first = "", ...rest]: string[] = JSON.parse(path);
    groups.set(first, [...(groups.get(first) ?? []), ...(rest.length > 0 ? [fieldPath(...rest)] : [])]);
  }
  return Object.fromEntries([...groups].map(([key, inner]) => [key, treeOf(inner)]));
}

function pathsOf(fields: FieldsV1 = {}, path: readonly string[] = []): string[] {
  return Object.entries(fields).flatMap(([key, inner]) =>
    Object.keys(inner).length === 0 ? [fieldPath(...path, key)] : pathsOf(inner, [...path, key]),
  );
}
