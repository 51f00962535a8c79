import { API_FIELD_MANAGER } from "../../crd/names.ts";
import type { KubeClient } from "../../kube/client.ts";
import { unlessCode } from "../../kube/errors.ts";
import type { ConfigMap, KubeObject } from "../../kube/objects.ts";
import { CONFIG_MAPS, collectionPath, objectPath } from "../../kube/paths.ts";

/** In `data`, `null` removes an entry; absent entries stay as they are. */
export interface RecordPatch {
  readonly labels?: Readonly<Record<string, string>>;
  readonly data: Readonly<Record<string, string | null>>;
}

/** The calls to the cluster that read, create and change a record. */
export class RecordWriter {
  readonly #client: Pick<KubeClient, "json">;
  readonly #namespace: string;
  readonly #signal: AbortSignal | undefined;

  /** @param signal aborts calls in flight and fails later ones */
  constructor(client: Pick<KubeClient, "json">, namespace: string, signal?: AbortSignal) {
    this.#client = client;
    this.#namespace = namespace;
    this.#signal = signal;
  }

  /** Reads the record live, past the cache. */
  async read(name: string): Promise<ConfigMap | undefined> {
    const path = objectPath(CONFIG_MAPS, this.#namespace, name);
    const call = this.#client.json<ConfigMap>({ path, signal: this.#signal });
    return await unlessCode(404, call, undefined);
  }

  /** @throws KubeApiError 409 if the record exists */
  create(record: object): Promise<ConfigMap> {
    return this.#client.json<ConfigMap>({
      method: "POST",
      path: collectionPath(CONFIG_MAPS, this.#namespace),
      query: { fieldManager: API_FIELD_MANAGER, fieldValidation: "Strict" },
      body: record,
      signal: this.#signal,
    });
  }

  /**
   * Changes exactly the given version.
   *
   * @throws KubeApiError 409, 404, or 422 on metadata.uid, if the record was changed, deleted or replaced
   * @throws KubeUnreachableError if there was no response; the outcome is unknown
   */
  patch({ metadata }: KubeObject, { labels, data }: RecordPatch): Promise<ConfigMap> {
    const { name, uid, resourceVersion } = metadata;
    return this.#client.json<ConfigMap>({
      method: "PATCH",
      path: objectPath(CONFIG_MAPS, this.#namespace, name),
      query: { fieldManager: API_FIELD_MANAGER, fieldValidation: "Strict" },
      patchType: "application/merge-patch+json",
      body: { metadata: { uid, resourceVersion, ...(labels === undefined ? {} : { labels }) }, data },
      signal: this.#signal,
    });
  }
}
