import type { KubeClient } from "../../kube/client.ts";
import { unlessCode } from "../../kube/errors.ts";
import { toReadError } from "./call-errors.ts";

/** Reads from the cluster, for each request, what the caches do not keep. */
export class LiveReader {
  readonly #client: Pick<KubeClient, "json">;

  constructor(client: Pick<KubeClient, "json">) {
    this.#client = client;
  }

  /**
   * Reads an object or a list as JSON.
   *
   * @param path from `objectPath` or `collectionPath`
   * @returns `undefined` if the object does not exist
   * @throws ApiError 503 if the cluster does not respond, or denies the read
   */
  async read<T>(path: string): Promise<T | undefined> {
    try {
      return await unlessCode(404, this.#client.json<T>({ path }), undefined);
    } catch (error) {
      throw toReadError(error);
    }
  }
}
