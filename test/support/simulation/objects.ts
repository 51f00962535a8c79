import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import type { PipeScaling } from "../../../src/crd/pipe-scaling.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import type { KubeObject, ObjectMeta } from "../../../src/kube/objects.ts";

export type ScalingObject = KubeObject & PipeScaling;

/** Returns true if the workload has the labels of a pipe. */
export function isPipe({ metadata: { labels = {} } }: KubeObject): boolean {
  return labels[TYPE_LABEL] === DATABASE_TYPE && labels[SERVICE_LABEL] !== undefined;
}

/** A deep copy, like an object that was received. */
export function parsed<T>(value: unknown): T {
  return JSON.parse(JSON.stringify(value));
}

export function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export function found<T>(objects: ReadonlyMap<string, T>, name: string): T {
  const object = objects.get(name);
  if (!object) throw notFound("GET", name);
  return object;
}

export function replaceAll<T>(objects: Map<string, T>, others: ReadonlyMap<string, T>): void {
  objects.clear();
  for (const [name, object] of others) objects.set(name, object);
}

/** The object of a write, if the preconditions of the write hold. */
export function checked<T extends KubeObject>(
  object: T | undefined,
  { uid, resourceVersion }: Partial<Pick<ObjectMeta, "uid" | "resourceVersion">>,
  method = "PATCH",
): T {
  if (!object) throw notFound(method, "the object");
  if (uid !== undefined && object.metadata.uid !== uid) {
    // A patch would change the uid, which is immutable; a deletion has preconditions.
    if (method === "DELETE") throw conflict(method, "the UID in the precondition does not match");
    const details = { causes: [{ field: "metadata.uid", message: "field is immutable" }] };
    throw new KubeApiError(method, 422, JSON.stringify({ message: "replaced", reason: "Invalid", details }));
  }
  if (resourceVersion !== undefined && object.metadata.resourceVersion !== resourceVersion)
    throw conflict(method, "the object has been modified; please apply your changes to the latest version");
  return object;
}

function notFound(method: string, name: string): KubeApiError {
  return new KubeApiError(method, 404, JSON.stringify({ message: `${name} not found`, reason: "NotFound" }));
}

function conflict(method: string, message: string): KubeApiError {
  return new KubeApiError(method, 409, JSON.stringify({ message, reason: "Conflict" }));
}

/** A time of the API server, in whole seconds. */
export function timeAt(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

/** UID of the first owner. */
export function ownerUidOf({ ownerReferences }: ObjectMeta): string | undefined {
  return ownerReferences?.[0]?.uid;
}
