import type { Nodes } from "../../capacity/nodes.ts";
import type { Rooms } from "../../capacity/rooms.ts";
import type { KubeClient } from "../../kube/client.ts";
import { isConflict, KubeUnreachableError, messageOf } from "../../kube/errors.ts";
import { formatLabelSelector, type LabelSelector } from "../../kube/label-selector.ts";
import type { Identity, KubeObject, ManagedFields } from "../../kube/objects.ts";
import { collectionPath, type Resource } from "../../kube/paths.ts";
import { readByList } from "../../kube/read-by-list.ts";
import type { Workload } from "../../kube/workloads.ts";
import { compareResourceVersions } from "../../runtime/resource-version.ts";
import { EtcdRollbackError } from "../../runtime/restart-required.ts";
import { keyOf, type Store } from "../../runtime/store.ts";
import type { Caches } from "../observe/caches.ts";
import type { DepartedPipes } from "../observe/deleted-objects.ts";
import type { LastRollout } from "../observe/last-rollout.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { KINDS, keyOfPipe } from "../observe/workloads/kinds.ts";
import {
  READ_LATER,
  type WriteError,
  type WritePurpose,
  type WrittenAnnotation,
} from "../observe/write-record.ts";
import { pipeRequest } from "./requests.ts";
import { CONFLICT, writeErrorOf } from "./write-error.ts";
import type { WriteMemory } from "./write-memory.ts";

/** The dependencies of every write. */
export interface Applier {
  readonly client: Pick<KubeClient, "json">;
  readonly caches: Pick<Caches, "pipes" | "pods" | "scalings">;
  readonly departed: DepartedPipes;
  readonly writes: WriteMemory;
  readonly nodes: Pick<Nodes, "list">;
  readonly rooms: Pick<Rooms, "find">;
  /** Throws when this process may no longer write (runtime/leader.ts). */
  readonly assertMayWrite: () => void;
  /** Call it if an object is older than it was: etcd was restored from a snapshot. */
  readonly onEtcdRollback: () => void;
}

export interface Aim {
  readonly purpose: WritePurpose;
  /** The wanted state, as in the record of the write. */
  readonly subject: string;
  /** Number of this attempt, if the object shows it. */
  readonly attempts?: number;
  /** The runs of the containers of a pod before the write. */
  readonly runs?: string;
  readonly isRequested?: boolean | undefined;
}

export interface Result {
  /** Why nothing was written, or why the stored object differs from the write. */
  readonly error?: WriteError | undefined;
  readonly annotation?: WrittenAnnotation | undefined;
}

/** The reaction to a failed write, by the kind of the object. */
interface Recovery {
  /** @returns `undefined` for a conflict, and if the error is not about this object */
  readonly errorOf: (cause: unknown) => WriteError | undefined;
  /** Reads the object after a conflict. */
  readonly refresh: () => Promise<void>;
}

/**
 * Writes to a pipe, and records the outcome. A later decision repeats a failed write.
 *
 * @returns the error of a failed write
 * @throws the error if it is not about this object
 */
export function attempt(
  applier: Applier,
  pipe: PipeView,
  aim: Aim,
  write: () => Promise<Result>,
): Promise<WriteError | undefined> {
  const recovery = { errorOf: writeErrorOf, refresh: () => refresh(applier, pipe) };
  return attemptOn(applier, pipe, aim, write, recovery);
}

/** Like {@link attempt}, for an object of any kind. */
export async function attemptOn(
  { writes }: Applier,
  { metadata: { uid, generation } }: { readonly metadata: Identity },
  { purpose, subject, ...known }: Aim,
  write: () => Promise<Result>,
  recovery: Recovery,
): Promise<WriteError | undefined> {
  const begun = writes.begin(uid, purpose, subject, known);
  try {
    const { error, annotation } = await write();
    if (error) writes.failed(begun, error, generation);
    else writes.done(begun, annotation, generation);
    return error;
  } catch (cause) {
    // A missing subresource is a 404, which would count as a conflict too, so this comes first.
    const error = recovery.errorOf(cause);
    const conflict = isConflict(cause) ? CONFLICT : undefined;
    // Without a response, the write may have succeeded.
    const isUnknown = cause instanceof KubeUnreachableError && READ_LATER.includes(purpose);
    if (error && isUnknown) writes.unknown(begun, error);
    else {
      const recorded = error ?? conflict ?? { reason: "WriteFailed", message: messageOf(cause) };
      writes.failed(begun, recorded, generation);
    }
    if (error) return error;
    if (!conflict) throw cause;
    await recovery.refresh();
    return conflict;
  }
}

/** Stores the response to a write or a read of a workload, which may have left the cache meanwhile. */
export function observePipe({ caches, departed, writes }: Applier, pipe: PipeView): void {
  const known = caches.pipes.get(keyOfPipe(pipe));
  const store = caches.pipes.of(pipe.kind);
  if (known && pipe.serviceId === "") {
    // The watch will report the removal with the version in which a label was removed. It would not remove a newer one.
    store.leave(pipe);
    departed.observe({ ...pipe, serviceId: known.serviceId });
    return;
  }
  departed.observe(pipe);
  if (known) store.observe(pipe);
  // No event would end the records of a workload that is in no cache.
  else if (!departed.has(pipe.metadata.uid)) writes.forgetAll(pipe.metadata.uid);
}

/**
 * Writes a workload with its annotation.
 *
 * @param rollout absent to leave the annotation as it is
 * @param managedFields replaces those of the workload
 */
export async function patchPipe(
  applier: Applier,
  pipe: PipeView,
  rollout: LastRollout | undefined,
  spec: object | undefined,
  managedFields?: readonly ManagedFields[],
): Promise<WrittenAnnotation | undefined> {
  const patched = await applier.client.json<Workload>(pipeRequest(pipe, rollout, spec, managedFields));
  const view = KINDS[pipe.kind].toView(patched);
  observePipe(applier, view);
  // The annotation of the view is equal, and the cache has it already, so it takes no more memory.
  return rollout && { lastRollout: view.lastRollout ?? rollout, isStripped: view.lastRollout === undefined };
}

/**
 * Reads a workload whose last write got no response or a conflict, or that left the cache during a commit. A version
 * that is newer than the one in the cache replaces it.
 */
export async function refresh(applier: Applier, pipe: PipeView): Promise<void> {
  const { uid, generation } = pipe.metadata;
  const current = await readPipe(applier, pipe);
  applier.writes.resolve(uid, current?.metadata.generation ?? generation);
  if (current) observePipe(applier, KINDS[pipe.kind].toView(current));
}

/**
 * Reads a whole workload.
 *
 * @returns `undefined` if it is gone, or if another object has its name now; the watch reports both
 */
export async function readPipe<T extends Workload>(applier: Applier, pipe: PipeView): Promise<T | undefined> {
  const { caches, departed, writes } = applier;
  const { uid } = pipe.metadata;
  const isKnown = caches.pipes.get(keyOfPipe(pipe)) !== undefined;
  const store = caches.pipes.of(pipe.kind);
  const current = await readCurrent<T>(applier, KINDS[pipe.kind].resource, store, pipe);
  if (current) return current;
  departed.forget(uid);
  if (!isKnown) writes.forgetAll(uid);
  return undefined;
}

/**
 * Reads an object with a list, because the controller may list objects of this kind, but not get them.
 *
 * @param store has the object as it was seen before
 * @throws EtcdRollbackError if it is older than that
 */
export async function readCurrent<T extends KubeObject>(
  { client, onEtcdRollback }: Pick<Applier, "client" | "onEtcdRollback">,
  resource: Resource,
  store: Pick<Store<KubeObject>, "get">,
  object: { readonly metadata: Identity },
): Promise<T | undefined> {
  const known = store.get(keyOf(object))?.metadata;
  const current = await readByList<T>(client, resource, object.metadata);
  if (!current || known?.uid !== current.metadata.uid) return current;
  if (compareResourceVersions(current.metadata.resourceVersion, known.resourceVersion) >= 0) return current;
  onEtcdRollback();
  throw new EtcdRollbackError();
}

/** A workload that was read as JSON, so with all of its fields. */
export interface WholeWorkload extends Workload {
  readonly spec: Workload["spec"] & { readonly selector: LabelSelector };
  readonly status?: { readonly updatedReplicas?: number };
}

/** Reads the objects that the selector of a workload selects. Some of them may belong to another workload. */
export async function listSelected<T extends KubeObject>(
  client: Pick<KubeClient, "json">,
  resource: Resource<T>,
  { metadata, spec }: WholeWorkload,
): Promise<readonly T[]> {
  const { items } = await client.json<{ readonly items: readonly T[] }>({
    path: collectionPath(resource, metadata.namespace),
    query: { labelSelector: formatLabelSelector(spec.selector) },
  });
  return items;
}
