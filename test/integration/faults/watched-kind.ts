import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import type { KubeClient } from "../../../src/kube/client.ts";
import { isCode } from "../../../src/kube/errors.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";

export interface Observation<T> {
  readonly type: "seen" | "gone";
  readonly object: T;
  readonly isInitial: boolean;
}

interface WatchedKindOptions<T> {
  readonly client: KubeClient;
  /** Path of the collection. */
  readonly path: string;
  readonly signal: AbortSignal;
  readonly onObservation: (observation: Observation<T>) => void;
  /** Events between these versions may be missing. */
  readonly onGap: (after: bigint, until: bigint) => void;
}

interface List<T> {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly T[];
}

type WatchLine<T> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: T }
  | { readonly type: "BOOKMARK"; readonly object: KubeObject }
  | { readonly type: "ERROR"; readonly object: { readonly code?: number; readonly message?: string } };

const RETRY_MS = 100;

/** Reports every version of the objects of one kind in one namespace, until the signal is aborted. */
export class WatchedKind<T extends KubeObject> {
  readonly #options: WatchedKindOptions<T>;
  readonly #alive = new Map<string, T>();
  #position: string | undefined;

  constructor(options: WatchedKindOptions<T>) {
    this.#options = options;
  }

  /** Resolves when all existing objects have been reported. */
  async begin(): Promise<void> {
    // A new kind is not served immediately.
    await waitFor(() => this.#list().then(() => true), { what: `a list of ${this.#options.path}` });
  }

  /** Continues from the last version; never rejects. */
  async run(): Promise<void> {
    while (!this.#options.signal.aborted) {
      try {
        await this.#watch();
      } catch (error) {
        if (isCode(error, 410)) await this.#list().catch(() => undefined);
        await delay(RETRY_MS);
      }
    }
  }

  /** True once the watch has delivered the current state. @throws Error if it never will */
  async isCaughtUp(): Promise<boolean> {
    const { metadata, items } = await this.#fetch();
    if (BigInt(metadata.resourceVersion) < BigInt(this.#position ?? 0)) {
      const { path } = this.#options;
      throw new Error(
        `${path} went back from ${this.#position} to ${metadata.resourceVersion}: create a new observer`,
      );
    }
    const isReported = (object: T) => {
      const known = this.#alive.get(object.metadata.uid)?.metadata.resourceVersion ?? 0;
      return BigInt(known) >= BigInt(object.metadata.resourceVersion);
    };
    return items.every(isReported) && items.length === this.#alive.size;
  }

  #fetch(): Promise<List<T>> {
    return this.#options.client.json({ path: this.#options.path });
  }

  async #list(): Promise<void> {
    const { metadata, items } = await this.#fetch();
    const { resourceVersion } = metadata;
    const isInitial = this.#position === undefined;
    if (this.#position !== undefined) this.#options.onGap(BigInt(this.#position), BigInt(resourceVersion));
    const here = new Set(items.map((object) => object.metadata.uid));
    for (const object of [...this.#alive.values()].filter((each) => !here.has(each.metadata.uid))) {
      const gone = { ...object, metadata: { ...object.metadata, resourceVersion } };
      this.#report({ type: "gone", object: gone, isInitial });
    }
    for (const object of items) this.#report({ type: "seen", object, isInitial });
    this.#position = resourceVersion;
  }

  async #watch(): Promise<void> {
    for await (const line of this.#lines()) {
      if (line.type === "ERROR" && line.object.code === 410) return this.#list();
      if (line.type === "ERROR") throw new Error(line.object.message ?? "the watch failed");
      this.#position = line.object.metadata.resourceVersion;
      if (line.type === "BOOKMARK") continue;
      this.#report({
        type: line.type === "DELETED" ? "gone" : "seen",
        object: line.object,
        isInitial: false,
      });
    }
  }

  async *#lines(): AsyncGenerator<WatchLine<T>> {
    const { client, path, signal } = this.#options;
    const query = { watch: true, allowWatchBookmarks: true, resourceVersion: this.#position };
    const body = await client.stream({ path, query, signal });
    for await (const line of createInterface({ input: Readable.from(body) })) yield JSON.parse(line);
  }

  #report(observation: Observation<T>): void {
    const { uid } = observation.object.metadata;
    if (observation.type === "gone") this.#alive.delete(uid);
    else this.#alive.set(uid, observation.object);
    this.#options.onObservation(observation);
  }
}
