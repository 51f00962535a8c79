/*
 * The fields of Kubernetes objects that this project reads, in their JSON format. The types of the client library do
 * not fit, because they represent dates as Date objects. Responses are not validated, because the API server validates
 * objects before it stores them.
 */

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly {
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
  }[];
  readonly managedFields?: readonly ManagedFields[];
}

/** The fields that one writer of the object owns. */
export interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  /** When the writer last changed one of its fields. */
  readonly time?: string;
  readonly fieldsV1?: FieldsV1;
}

/** A tree of fields: `f:name` for a property, `k:{…}` for the list item with these keys. */
export interface FieldsV1 {
  readonly [field: string]: FieldsV1;
}

/** Identifies an object and its version; caches drop the rest of the metadata. */
export type Identity = Pick<ObjectMeta, "name" | "uid" | "resourceVersion"> & {
  readonly namespace: string;
  readonly generation: number;
};

export function identityOf({
  name,
  namespace = "",
  uid,
  resourceVersion,
  generation = 0,
}: ObjectMeta): Identity {
  return { name, namespace, uid, resourceVersion, generation };
}

export interface KubeObject {
  readonly metadata: ObjectMeta;
}

/** Returns true for an object that was deleted, and that a finalizer can keep for any time. */
export function isBeingDeleted({ deletionTimestamp }: Pick<ObjectMeta, "deletionTimestamp">): boolean {
  return deletionTimestamp !== undefined;
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

export interface Secret extends KubeObject {
  readonly type?: string;
  /** Values in base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface Node extends KubeObject {
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: { readonly allocatable?: Readonly<Record<string, string>> };
}

export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}
