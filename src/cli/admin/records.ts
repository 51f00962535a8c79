import type { KubeClient } from "../../kube/client.ts";
import { isCode } from "../../kube/errors.ts";
import type { Identity, KubeObject } from "../../kube/objects.ts";
import { collectionPath, objectPath, type Resource } from "../../kube/paths.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL, type RecordKind } from "../../records/labels.ts";
import { CliError } from "../failure.ts";

/** Manager of the fields that the command line writes, as managedFields name it. */
const FIELD_MANAGER = "pipe-scaling-cli";

interface NewObject {
  readonly metadata: { readonly name: string };
}

/** Entries of an object's data; `null` removes one, and those that are absent stay as they are. */
export type DataChange = Readonly<Record<string, string | null>>;

/**
 * The records' namespace, with the rights of the kubeconfig.
 *
 * Once the signal is aborted no call begins, and those that read are ended. A write under way is waited for:
 * its outcome is for the person to know.
 */
export class Records {
  readonly #kube: KubeClient;
  readonly namespace: string;
  readonly #signal: AbortSignal | undefined;

  constructor(kube: KubeClient, namespace: string, signal: AbortSignal | undefined) {
    this.#kube = kube;
    this.namespace = namespace;
    this.#signal = signal;
  }

  /** The same, for what has to be done to the end once it was begun. */
  uninterrupted(): Records {
    return new Records(this.#kube, this.namespace, undefined);
  }

  /**
   * Makes a record that must not be there yet.
   *
   * @param taken the sentence for one that is
   */
  async create(resource: Resource, object: NewObject, taken: string): Promise<void> {
    if (!(await this.createIfAbsent(resource, object))) throw new CliError(taken);
  }

  /** @returns false when an object of that name is there already; it is left as it is. */
  async createIfAbsent(resource: Resource, object: NewObject): Promise<boolean> {
    this.#signal?.throwIfAborted();
    try {
      await this.#kube.json({
        method: "POST",
        path: collectionPath(resource, this.namespace),
        query: { fieldManager: FIELD_MANAGER },
        body: object,
      });
      return true;
    } catch (error) {
      if (isCode(error, 409)) return false;
      throw isCode(error, 404) ? this.#namespaceMissing(error) : error;
    }
  }

  /** @param namespace another one than the records' own */
  async get<T extends KubeObject>(
    resource: Resource,
    name: string,
    namespace = this.namespace,
  ): Promise<T | undefined> {
    try {
      const path = objectPath(resource, namespace, name);
      return await this.#kube.json<T>({ path, signal: this.#signal });
    } catch (error) {
      if (isCode(error, 404)) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(
    resource: Resource,
    kind: RecordKind | "api-key",
    organizationId?: string,
  ): Promise<readonly T[]> {
    const selectors = [
      `${RESOURCE_LABEL}=${kind}`,
      ...(organizationId === undefined ? [] : [`${ORGANIZATION_LABEL}=${organizationId}`]),
    ];
    const { items } = await this.#kube.json<{ readonly items: readonly T[] }>({
      path: collectionPath(resource, this.namespace),
      query: { labelSelector: selectors.join(",") },
      signal: this.#signal,
    });
    if (items.length === 0) await this.requireNamespace();
    return items;
  }

  /**
   * Changes an object's data, if the object is still the one that was read.
   *
   * @throws KubeApiError 409, 404, or 422 on metadata.uid when another write came first
   */
  async change(resource: Resource, read: KubeObject, data: DataChange): Promise<void> {
    await this.#patch(resource, { ...read.metadata, namespace: this.namespace }, {}, { data });
  }

  /**
   * Changes the spec of an object, and annotations with it, if the object is still the one that was read.
   *
   * @throws KubeApiError 409, 404, or 422 on metadata.uid when another write came first
   */
  async changeSpec(
    resource: Resource,
    { metadata }: { readonly metadata: Identity },
    spec: object,
    annotations: DataChange,
  ): Promise<void> {
    await this.#patch(resource, metadata, { annotations }, { spec });
  }

  async #patch(
    resource: Resource,
    { namespace, name, uid, resourceVersion }: Omit<Identity, "generation">,
    metadata: object,
    body: object,
  ): Promise<void> {
    this.#signal?.throwIfAborted();
    await this.#kube.json({
      method: "PATCH",
      path: objectPath(resource, namespace, name),
      patchType: "application/merge-patch+json",
      query: { fieldManager: FIELD_MANAGER },
      body: { metadata: { uid, resourceVersion, ...metadata }, ...body },
    });
  }

  /**
   * Deletes an object, if it is still the one that was read. One that is gone already is as it should be.
   *
   * @throws KubeApiError 409 when another write came first
   */
  async delete(resource: Resource, read: KubeObject): Promise<void> {
    this.#signal?.throwIfAborted();
    const { name, uid, resourceVersion } = read.metadata;
    try {
      await this.#kube.json({
        method: "DELETE",
        path: objectPath(resource, this.namespace, name),
        body: { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid, resourceVersion } },
      });
    } catch (error) {
      if (!isCode(error, 404)) throw error;
    }
  }

  /** Makes the records' own namespace, unless it is there. */
  async createNamespace(): Promise<void> {
    this.#signal?.throwIfAborted();
    try {
      await this.#kube.json({
        method: "POST",
        path: "/api/v1/namespaces",
        query: { fieldManager: FIELD_MANAGER },
        body: { apiVersion: "v1", kind: "Namespace", metadata: { name: this.namespace } },
      });
    } catch (error) {
      if (!isCode(error, 409)) throw error;
    }
  }

  /**
   * Checks that the namespace exists, because the API server reports a missing namespace as a missing object.
   *
   * @throws CliError with the remedy
   */
  async requireNamespace(): Promise<void> {
    try {
      await this.#kube.json({ path: `/api/v1/namespaces/${this.namespace}`, signal: this.#signal });
    } catch (error) {
      if (isCode(error, 404)) throw this.#namespaceMissing(error);
      // A user without permission for namespaces may still have permission inside this one.
      if (!isCode(error, 403)) throw error;
    }
  }

  #namespaceMissing(cause: Error): CliError {
    return new CliError(
      `There is no namespace ${this.namespace} for the records: create it with \`kubectl create namespace ${this.namespace}\` or \`admin organization create --create-namespace\`, or name another one with --namespace.`,
      { cause },
    );
  }
}
