import type { KubeClient, KubeRequest } from "../../kube/client.ts";
import { isCode, unlessCode } from "../../kube/errors.ts";
import type { ConfigMap, KubeObject } from "../../kube/objects.ts";
import { CONFIG_MAPS, collectionPath, objectPath, type Resource } from "../../kube/paths.ts";
import type { RecordKind } from "../../records/kinds.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL } from "../../records/labels.ts";
import type { Clock } from "../../runtime/clock.ts";
import { CliError } from "../failure.ts";
import { kubectlCommand, type Place, programCommand } from "../options.ts";
import { listAll } from "../reading.ts";

/** Manager of the fields that the command line writes, as managedFields name it. */
const FIELD_MANAGER = "pipe-scaling-cli";

/** Entries of an object's data; `null` removes one, and those that are absent or undefined stay as they are. */
export type DataChange = Readonly<Record<string, string | null | undefined>>;

/**
 * Reads and writes records with the permissions of the kubeconfig.
 *
 * After the signal is aborted, no call begins, and reads in progress end. A write in progress continues, so that its
 * outcome is known.
 */
export class Records {
  readonly kube: KubeClient;
  readonly place: Place;
  /** The clock of the API server since its first response. That of this machine can be wrong. */
  readonly clock: Pick<Clock, "now">;
  readonly #signal: AbortSignal | undefined;

  constructor(kube: KubeClient, place: Place, clock: Pick<Clock, "now">, signal: AbortSignal | undefined) {
    this.kube = kube;
    this.place = place;
    this.clock = clock;
    this.#signal = signal;
  }

  get namespace(): string {
    return this.place.namespace;
  }

  /** Returns the same records without the signal, for calls that must also be made after Ctrl-C. */
  uninterrupted(): Records {
    return new Records(this.kube, this.place, this.clock, undefined);
  }

  /** @throws KubeApiError 409 if the record already exists, CliError if the namespace does not exist */
  async create(resource: Resource, object: { readonly metadata: { readonly name: string } }): Promise<void> {
    try {
      await this.#write({ method: "POST", path: collectionPath(resource, this.namespace), body: object });
    } catch (cause) {
      if (!isCode(cause, 404)) throw cause;
      const create = kubectlCommand(this.place, `create namespace ${this.namespace}`);
      const first = programCommand(
        this.place,
        "admin organization create --create-namespace --name <name> --tier <tier>",
      );
      throw new CliError(
        `There is no namespace ${this.namespace} for the records: create it with \`${create}\` or \`${first}\`, or name another one with --namespace.`,
        { cause },
      );
    }
  }

  /** Creates the namespace of the records unless it exists. */
  async createNamespace(): Promise<void> {
    const body = { apiVersion: "v1", kind: "Namespace", metadata: { name: this.namespace } };
    await unlessCode(409, this.#write({ method: "POST", path: "/api/v1/namespaces", body }), undefined);
  }

  get<T extends KubeObject>(
    resource: Resource,
    name: string,
    namespace = this.namespace,
  ): Promise<T | undefined> {
    const path = objectPath(resource, namespace, name);
    return unlessCode(404, this.kube.json<T>({ path, signal: this.#signal }), undefined);
  }

  /** Lists all ConfigMaps of the namespace, because records without labels can be found only by their names. */
  configMaps(): Promise<readonly ConfigMap[]> {
    return listAll<ConfigMap>(this.kube, { resource: CONFIG_MAPS, namespace: this.namespace }, this.#signal);
  }

  /** The records of one kind, of one organization or of all. */
  async list<T extends KubeObject>(
    resource: Resource,
    kind: RecordKind | "api-key",
    organizationId?: string,
  ): Promise<readonly T[]> {
    const ofOrganization = organizationId === undefined ? "" : `,${ORGANIZATION_LABEL}=${organizationId}`;
    const query = { labelSelector: `${RESOURCE_LABEL}=${kind}${ofOrganization}` };
    const selection = { resource, namespace: this.namespace, query };
    return await listAll<T>(this.kube, selection, this.#signal);
  }

  /**
   * Changes an object, unless another write has changed it since it was read.
   *
   * @param change a merge patch
   * @returns the object as it is now
   * @throws KubeApiError 409, 404, or 422 on metadata.uid if another write came first
   */
  async change<T extends KubeObject>(
    resource: Resource,
    { metadata }: T,
    change: { readonly metadata?: object; readonly data?: DataChange; readonly spec?: object },
  ): Promise<T> {
    const { name, namespace = this.namespace, uid, resourceVersion } = metadata;
    return await this.#write<T>({
      method: "PATCH",
      path: objectPath(resource, namespace, name),
      patchType: "application/merge-patch+json",
      body: { ...change, metadata: { uid, resourceVersion, ...change.metadata } },
    });
  }

  /**
   * Deletes an object, unless another write has changed it since it was read. It may already be gone.
   *
   * @param isAnyVersion whether the object may have been changed, but not replaced
   * @throws KubeApiError 409 if another write came first
   */
  async delete(resource: Resource, { metadata }: KubeObject, isAnyVersion = false): Promise<void> {
    const { name, uid, resourceVersion } = metadata;
    const preconditions = isAnyVersion ? { uid } : { uid, resourceVersion };
    const body = { apiVersion: "v1", kind: "DeleteOptions", preconditions };
    const path = objectPath(resource, this.namespace, name);
    await unlessCode(404, this.#write({ method: "DELETE", path, body }), undefined);
  }

  async #write<T>(request: KubeRequest): Promise<T> {
    this.#signal?.throwIfAborted();
    return await this.kube.json<T>({ query: { fieldManager: FIELD_MANAGER }, ...request });
  }
}
