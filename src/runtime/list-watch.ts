import type { KubeClient, KubeRequest } from "../kube/client.ts";
import type { KubeObject } from "../kube/objects.ts";
import { collectionPath, type Resource } from "../kube/paths.ts";
import { type List, listOf } from "../kube/protobuf/envelope.ts";
import type { Message } from "../kube/protobuf/message.ts";
import { LIST_AS_EVENTS } from "./initial-list.ts";
import { listPages } from "./list-pages.ts";
import { type KnownEvent, type WatchEvent, watchEvents } from "./watch-stream.ts";

/** The server ends a watch after this time: 10 to 20 minutes, at random, so that not all watches end together. */
const WATCH_SECONDS_LEAST = 600;
const WATCH_SECONDS_SPREAD = 600;
export const MAX_WATCH_SECONDS = WATCH_SECONDS_LEAST + WATCH_SECONDS_SPREAD;

/** The client methods that a reflector calls. */
export type ReflectorClient = Pick<KubeClient, "json" | "stream">;

/** Selects objects of one kind. */
export interface ListWatchOptions<Raw extends KubeObject> {
  readonly client: ReflectorClient;
  readonly resource: Resource<Raw>;
  /** All namespaces when absent. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly random?: () => number;
}

/** The requests of a reflector: lists and watches of the selected objects. */
export class ListWatch<Raw extends KubeObject> {
  readonly path: string;
  readonly #options: ListWatchOptions<Raw>;
  readonly #listMessage: Message<List<Raw>> | undefined;

  constructor(options: ListWatchOptions<Raw>) {
    this.path = collectionPath(options.resource, options.namespace);
    this.#options = options;
    const { message } = options.resource;
    this.#listMessage = message && listOf(message);
  }

  /** The current resource version of the server, from a list of one object. */
  async version(signal: AbortSignal): Promise<string> {
    const { metadata } = await this.#options.client.json<List<Raw>>(this.#listRequest({ limit: 1 }, signal));
    return metadata.resourceVersion;
  }

  list<T>(
    read: (raw: Raw) => readonly T[],
    signal: AbortSignal,
  ): Promise<{ readonly objects: T[]; readonly version: string }> {
    return listPages(this.#options.client, this.#listRequest({}, signal), read);
  }

  /**
   * @param after the watch starts after this version; without one it starts with all objects
   * @param isKnown returns true if the store already has the change with this version, so that its event can be skipped
   */
  async watch(
    after: string | undefined,
    isKnown: (resourceVersion: string) => boolean,
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent<Raw> | KnownEvent>> {
    const { client, resource, random = Math.random } = this.#options;
    const { message } = resource;
    const timeoutSeconds = WATCH_SECONDS_LEAST + Math.floor(random() * WATCH_SECONDS_SPREAD);
    const start = after === undefined ? LIST_AS_EVENTS : { resourceVersion: after };
    const query = { watch: true, allowWatchBookmarks: true, ...start, timeoutSeconds };
    const stream = await client.stream({ ...this.#request(query, signal), signal, message });
    return watchEvents<Raw>(stream, { path: this.path, isKnown, message });
  }

  #listRequest(query: KubeRequest["query"], signal: AbortSignal): KubeRequest {
    return { ...this.#request(query, signal), message: this.#listMessage };
  }

  #request(query: KubeRequest["query"], signal: AbortSignal): KubeRequest {
    const { labelSelector, fieldSelector } = this.#options;
    return { path: this.path, query: { ...query, labelSelector, fieldSelector }, signal };
  }
}
