import type { KubeClient } from "../kube/client.ts";
import { isCode } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";
import { collectionPath, objectPath, type Resource } from "../kube/paths.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL, type RecordKind } from "../records/labels.ts";
import { CliError } from "./failure.ts";

/** Manager of the fields that the command line writes, as managedFields name it. */
const FIELD_MANAGER = "pipe-scaling-cli";

interface NewObject {
  readonly metadata: { readonly name: string };
}

/** The records' namespace, with the rights of the kubeconfig. */
export class Records {
  readonly #kube: KubeClient;
  readonly namespace: string;

  constructor(kube: KubeClient, namespace: string) {
    this.#kube = kube;
    this.namespace = namespace;
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

  async get<T extends KubeObject>(resource: Resource, name: string): Promise<T | undefined> {
    try {
      return await this.#kube.json<T>({ path: objectPath(resource, this.namespace, name) });
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
    });
    if (items.length === 0) await this.requireNamespace();
    return items;
  }

  /**
   * Sets one key of an object's data, if the object is still the one that was read.
   *
   * @throws KubeApiError 409 when another write came first
   */
  async setKey(resource: Resource, read: KubeObject, key: string, value: string): Promise<void> {
    const { name, uid, resourceVersion } = read.metadata;
    await this.#kube.json({
      method: "PATCH",
      path: objectPath(resource, this.namespace, name),
      patchType: "application/merge-patch+json",
      query: { fieldManager: FIELD_MANAGER },
      body: { metadata: { uid, resourceVersion }, data: { [key]: value } },
    });
  }

  /** Makes the records' own namespace, unless it is there. */
  async createNamespace(): Promise<void> {
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
   * What is not found may be missing for want of the whole namespace, which the API server does not tell.
   *
   * @throws CliError with what to do about that
   */
  async requireNamespace(): Promise<void> {
    try {
      await this.#kube.json({ path: `/api/v1/namespaces/${this.namespace}` });
    } catch (error) {
      if (isCode(error, 404)) throw this.#namespaceMissing(error);
      // Who may not look at namespaces may still look into this one.
      if (!isCode(error, 403)) throw error;
    }
  }

  #namespaceMissing(cause: Error): CliError {
    return new CliError(
      `There is no namespace ${this.namespace} for the records: make it with \`kubectl create namespace ${this.namespace}\`, let \`organization create --create-namespace\` make it, or name another one with --namespace.`,
      { cause },
    );
  }
}
