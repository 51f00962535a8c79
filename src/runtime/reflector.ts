import type { KubeClient, KubeRequest } from "../kube/client.ts";
import { isCode, KubeApiError, KubeUnreachableError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";
import { collectionPath, type Resource } from "../kube/paths.ts";
import { type List, listOf } from "../kube/protobuf/envelope.ts";
import type { Message } from "../kube/protobuf/message.ts";
import { type Clock, pause } from "./clock.ts";
import type { Informer } from "./informer.ts";
import { type CompleteList, INITIAL_EVENTS_END, InitialList, LIST_AS_EVENTS } from "./initial-list.ts";
import { listPages } from "./list-pages.ts";
import { RetryBackoff } from "./retry-backoff.ts";
import { SilenceLimit } from "./silence-limit.ts";
import type { Store } from "./store.ts";
import { WatchPosition } from "./watch-position.ts";
import { type KnownEvent, type WatchEvent, watchEvents } from "./watch-stream.ts";

/** A watch ends by itself after 10 to 20 minutes, at random, so that not all watches end at the same time. */
const WATCH_SECONDS_LEAST = 600;
const WATCH_SECONDS_SPREAD = 600;

/** The server may end a watch at any time; the next one starts at once unless this one ended sooner than that. */
const SHORT_WATCH_MS = 1000;

/** The client methods that a reflector calls. */
export type ReflectorClient = Pick<KubeClient, "json" | "stream">;

export interface ReflectorOptions<T extends KubeObject, Raw extends KubeObject = KubeObject> {
  readonly client: ReflectorClient;
  readonly resource: Resource<Raw>;
  /** All namespaces when absent. */
  readonly namespace?: string | undefined;
  /** Drops objects of other namespaces unread; for a watch of all namespaces. */
  readonly includes?: (namespace: string) => boolean;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly store: Store<T>;
  /** Reduces an object to the fields that the store keeps. */
  readonly project: (raw: Raw) => T;
  readonly clock: Clock;
  readonly random?: () => number;
  /** A problem with the API server, already being retried. */
  readonly onProblem: (problem: unknown) => void;
  /**
   * etcd was restored from a snapshot. Called before the store shows it; the stores of other kinds may still hold
   * objects from after the snapshot.
   */
  readonly onEtcdRollback?: (() => void) | undefined;
}

/**
 * Keeps a store equal to the API server's objects of one kind: lists them, then watches from there, forever.
 *
 *     list ──▶ watch ──ended──▶ watch from `lastSyncResourceVersion`
 *       ▲        └─ relist after 410, an outage or an etcd rollback ─┐
 *       └────────────────────────────────────────────────────────────┘
 *
 * Guarantees:
 * - Only the signal ends it. After an error it calls `onProblem` and retries with a backoff of 0.8 to 30 s, which
 *   starts over after two minutes without an error. So no server can make it list more than ten times a minute.
 * - A list asks for no resource version, so it is a consistent read. It replaces the store's contents and starts a
 *   new epoch, even if it is older than they are (etcd restored from a snapshot: `onEtcdRollback`). It arrives as the
 *   first events of the watch (Kubernetes 1.32), one object in memory at a time, or else page by page.
 * - It skips, unread, the event of our own write if the store already has the response to that write.
 * - If the server ends a watch, the next one continues from the last version: that is normal. It starts at once, but
 *   at most one watch a second, and with the backoff if the watch ended within a second and without an event. A
 *   server that ends the initial list early has failed.
 * - After an outage it relists. After any other error, and after silence (a half-open connection), it compares its
 *   position with the server's before it continues.
 * - `lastContact` never advances while the store is older than that: neither during a list nor during the backlog
 *   of an interrupted watch.
 */
export class Reflector<T extends KubeObject, Raw extends KubeObject = KubeObject> implements Informer {
  readonly resource: string;
  readonly #options: ReflectorOptions<T, Raw>;
  readonly #path: string;
  readonly #synced = Promise.withResolvers<void>();
  readonly #position: WatchPosition;
  readonly #listMessage: Message<List<Raw>> | undefined;
  /** False once the server has refused to send a list as events. */
  #canStreamLists = true;
  #isSynced = false;

  constructor(options: ReflectorOptions<T, Raw>) {
    this.resource = options.resource.plural;
    this.#options = options;
    this.#path = collectionPath(options.resource, options.namespace);
    this.#position = new WatchPosition(options.clock);
    const { message } = options.resource;
    this.#listMessage = message && listOf(message);
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  get lastContact(): number {
    return this.#position.lastContact;
  }

  async run(signal: AbortSignal): Promise<void> {
    const backoff = new RetryBackoff(this.#options.clock, this.#options.random);
    while (!signal.aborted) {
      try {
        await this.#listAndWatch(backoff, signal);
      } catch (error) {
        if (!signal.aborted) await this.#recover(error, backoff, signal);
      }
    }
  }

  /** One watch, after the check or the list that it starts from. */
  async #listAndWatch(backoff: RetryBackoff, signal: AbortSignal): Promise<void> {
    if (this.#position.needsCheck) await this.#checkPosition(signal);
    if (this.#position.needsList && !this.#canStreamLists) await this.#list(signal);
    const { events, durationMs } = await this.#watch(signal);
    if (durationMs >= SHORT_WATCH_MS) return;
    await pause(this.#options.clock, events === 0 ? backoff.next() : SHORT_WATCH_MS - durationMs, signal);
  }

  async #recover(error: unknown, backoff: RetryBackoff, signal: AbortSignal): Promise<void> {
    if (this.#position.needsList && this.#canStreamLists && isCode(error, 422)) {
      this.#canStreamLists = false;
      return;
    }
    const isExpired = isCode(error, 410);
    if (isExpired || isOutage(error)) this.#position.discard();
    else this.#position.doubt();
    if (!isExpired) this.#options.onProblem(error);
    const retryAfterMs = error instanceof KubeApiError ? error.retryAfterMs : undefined;
    await pause(this.#options.clock, backoff.next(retryAfterMs), signal);
  }

  async #checkPosition(signal: AbortSignal): Promise<void> {
    const { metadata } = await this.#options.client.json<List<Raw>>(this.#listRequest({ limit: 1 }, signal));
    this.#position.check(metadata.resourceVersion);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, store, namespace } = this.#options;
    const list = store.beginList(namespace);
    const requestedAt = this.#options.clock.monotonic();
    try {
      const read = (raw: Raw) => this.#read(raw);
      const { objects, version } = await listPages(client, this.#listRequest({}, signal), read);
      this.#syncWith({ list, objects, requestedAt }, version);
    } finally {
      store.abandon(list);
    }
  }

  /** Replaces the contents of the store with a list. */
  #syncWith({ list, objects, requestedAt }: CompleteList<T>, version: string): void {
    const { store, onEtcdRollback } = this.#options;
    if (store.isRolledBackBy(list, objects, version)) onEtcdRollback?.();
    store.replace(list, objects, version);
    this.#position.moveToList(version, requestedAt);
    this.#isSynced = true;
    this.#synced.resolve();
  }

  /** Resolves when the server ends the watch. @throws Error also if that happens before the initial list is complete */
  async #watch(signal: AbortSignal): Promise<{ readonly events: number; readonly durationMs: number }> {
    const { client, clock, store, namespace } = this.#options;
    const silence = new SilenceLimit(clock, this.#path);
    const startedAt = clock.monotonic();
    let events = 0;
    let initial = this.#position.needsList ? new InitialList(store, namespace, startedAt) : undefined;
    try {
      const abort = AbortSignal.any([signal, silence.signal]);
      const { message } = this.#options.resource;
      const body = await client.stream({
        ...this.#request(this.#watchQuery(), abort),
        ...{ signal: abort, message },
      });
      // A list in flight needs every event: the store's own copy does not count toward it.
      const isKnown = (version: string) => initial === undefined && store.isOurs(version);
      for await (const event of watchEvents<Raw>(body, { path: this.#path, isKnown, message })) {
        silence.restart();
        if (event.type === "KNOWN") this.#skip(event);
        else if (initial) initial = this.#handleInitial(event, initial);
        else this.#handle(event);
        events += 1;
      }
      if (initial) throw new Error(`${this.#path}: the server ended the initial list before it was complete`);
      return { events, durationMs: clock.monotonic() - startedAt };
    } finally {
      silence.end();
      initial?.abandon();
    }
  }

  #watchQuery(): KubeRequest["query"] {
    const { random = Math.random } = this.#options;
    const start = this.#position.needsList
      ? LIST_AS_EVENTS
      : { resourceVersion: this.#position.lastSyncResourceVersion };
    const timeoutSeconds = WATCH_SECONDS_LEAST + Math.floor(random() * WATCH_SECONDS_SPREAD);
    return { watch: true, allowWatchBookmarks: true, ...start, timeoutSeconds };
  }

  /** @returns undefined if the event completes the list */
  #handleInitial(event: WatchEvent<Raw>, initial: InitialList<T>): InitialList<T> | undefined {
    if (event.type !== "BOOKMARK") {
      for (const object of this.#read(event.object)) initial.take(event.type, object);
      return initial;
    }
    const { annotations, resourceVersion } = event.object.metadata;
    if (annotations?.[INITIAL_EVENTS_END] !== "true") return initial;
    this.#syncWith(initial, resourceVersion);
    return undefined;
  }

  #handle(event: WatchEvent<Raw>): void {
    const { store } = this.#options;
    if (event.type === "DELETED") {
      for (const object of this.#read(event.object)) store.remove(object);
    } else if (event.type !== "BOOKMARK") {
      for (const object of this.#read(event.object)) store.apply(object);
    }
    this.#position.advance(event.object.metadata.resourceVersion);
  }

  #skip({ resourceVersion }: KnownEvent): void {
    this.#options.store.skipOurs(resourceVersion);
    this.#position.advance(resourceVersion);
  }

  /** Empty if the object cannot be read: one malformed object must not block all others. */
  #read(raw: Raw): readonly T[] {
    if (this.#options.includes?.(raw.metadata.namespace ?? "") === false) return [];
    try {
      return [this.#options.project(raw)];
    } catch (cause) {
      const { namespace, name } = raw.metadata;
      this.#options.onProblem(new Error(`${this.#path}: ${namespace}/${name} cannot be read`, { cause }));
      return [];
    }
  }

  #listRequest(query: KubeRequest["query"], signal: AbortSignal): KubeRequest {
    return { ...this.#request(query, signal), message: this.#listMessage };
  }

  #request(query: KubeRequest["query"], signal: AbortSignal): KubeRequest {
    const { labelSelector, fieldSelector } = this.#options;
    return { path: this.#path, query: { ...query, labelSelector, fieldSelector }, signal };
  }
}

/**
 * No API server responded: meanwhile etcd may have been restored, and its version may have passed our position again.
 */
function isOutage(error: unknown): boolean {
  return error instanceof KubeUnreachableError || (error instanceof KubeApiError && error.code >= 500);
}
