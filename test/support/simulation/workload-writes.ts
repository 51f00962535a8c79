import type { ObjectMeta } from "../../../src/kube/objects.ts";
import type { Workload } from "../../../src/kube/workloads.ts";
import { managedFieldsAfter, type Writer } from "./managed-fields.ts";
import { isSame, parsed } from "./objects.ts";
import { patched } from "./patch.ts";

/** A workload as its owner writes it. */
export interface Manifest {
  readonly metadata: Pick<ObjectMeta, "name" | "labels" | "annotations">;
  readonly spec: Workload["spec"];
}

/** A write to the simulated API server. */
interface Write {
  readonly writer: Writer;
  readonly at: string;
  /** The next resource version. */
  readonly next: () => string;
}

/** Returns a new workload as the API server stores it. */
export function created<T extends Manifest>(made: T, { writer, at, next }: Write) {
  const stamps = { uid: `uid-${next()}`, resourceVersion: next(), generation: 1, creationTimestamp: at };
  const object = { ...made, metadata: { ...made.metadata, ...stamps } };
  const managedFields = managedFieldsAfter(undefined, object, writer, at) ?? [];
  return { ...object, metadata: { ...object.metadata, managedFields } };
}

/** Returns a workload after a patch of the controller, which has annotations, and may have managedFields and a spec. */
export function merged<T extends Workload>(before: T, { metadata, spec }: Workload): T {
  const { annotations = {}, managedFields = before.metadata.managedFields } = metadata;
  const after: T = parsed(patched(before, { metadata: { annotations }, ...(spec ? { spec } : {}) }, true));
  return { ...after, metadata: { ...after.metadata, ...(managedFields && { managedFields }) } };
}

/**
 * Returns the next version of a workload, with a new generation if its spec has changed.
 *
 * @param applied paths of the fields that the writer applied (`fieldPath`)
 */
export function nextVersion<T extends Workload>(
  before: T,
  after: T,
  { writer, at, next }: Write,
  applied: readonly string[] = [],
): T {
  const generation = (before.metadata.generation ?? 0) + (isSame(before.spec, after.spec) ? 0 : 1);
  const { managedFields = [], ...metadata } = after.metadata;
  // If a patch replaces managedFields, the write is recorded in the new ones.
  const recorded = { ...before, metadata: { ...before.metadata, managedFields } };
  const managed = managedFieldsAfter(recorded, after, writer, at, applied);
  const stamps = { generation, resourceVersion: next(), ...(managed ? { managedFields: managed } : {}) };
  return { ...after, metadata: { ...metadata, ...stamps } };
}
