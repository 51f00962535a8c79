import type { KubeClient, KubeRequest } from "../kube/client.ts";
import { isCode, KubeApiError, KubeUnreachableError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";
import { collectionPath, type Resource } from "../kube/paths.ts";
import { type Clock, pause } from "./clock.ts";
import type { Informer } from "./informer.ts";
import { type CompleteList, ENDED_LIST, InitialList, LIST_AS_EVENTS } from "./initial-list.ts";
import { type ListPage, listPages } from "./list-pages.ts";
import { compareResourceVersions } from "./resource-version.ts";
import { RetryBackoff } from "./retry-backoff.ts";
import { SilenceLimit } from "./silence-limit.ts";
import type { Store } from "./store.ts";
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
  readonly resource: Resource;
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
 * Keeps a store equal to the API server's objects of one kind: lists them, then watches from there, for ever.
 *
 *     list ──▶ watch ──ended──▶ watch from the last version seen
 *       ▲        └─ 410, silence, or the server's history is older than ours ─┐
 *       └─────────────────────────────────────────────────────────────────────┘
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
 * - After an outage it lists again. After any other error, and after silence (a half-open connection), it compares
 *   its position with the server's before it continues.
 * - `lastContact` never advances while the store is older than that: neither during a list nor during the backlog
 *   of an interrupted watch.
 */
export class Reflector<T extends KubeObject, Raw extends KubeObject = KubeObject> implements Informer {
  readonly resource: string;
  readonly #options: ReflectorOptions<T, Raw>;
  readonly #path: string;
  readonly #synced = Promise.withResolvers<void>();
  #position: string | undefined;
  #isDoubtful = false;
  /** The server's version when the position was last checked; older events are backlog and prove no freshness. */
  #backlogEnd = "";
  /** False once the server has refused to send a list as events. */
  #canStream = true;
  #lastContact = Number.NEGATIVE_INFINITY;
  #isSynced = false;

  constructor(options: ReflectorOptions<T, Raw>) {
    this.resource = options.resource.plural;
    this.#options = options;
    this.#path = collectionPath(options.resource, options.namespace);
  }

  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  get lastContact(): number {
    return this.#lastContact;
  }

  async run(signal: AbortSignal): Promise<void> {
    const backoff = new RetryBackoff(this.#options.clock, this.#options.random);
    while (!signal.aborted) {
      try {
        await this.#follow(backoff, signal);
      } catch (error) {
        if (!signal.aborted) await this.#recover(error, backoff, signal);
      }
    }
  }

  /** One watch, after the check or the list that it starts from. */
  async #follow(backoff: RetryBackoff, signal: AbortSignal): Promise<void> {
    if (this.#isDoubtful) await this.#checkPosition(signal);
    this.#isDoubtful = false;
    if (this.#position === undefined && !this.#canStream) await this.#list(signal);
    const { events, durationMs } = await this.#watch(signal);
    if (durationMs >= SHORT_WATCH_MS) return;
    await pause(this.#options.clock, events === 0 ? backoff.next() : SHORT_WATCH_MS - durationMs, signal);
  }

  async #recover(error: unknown, backoff: RetryBackoff, signal: AbortSignal): Promise<void> {
    if (this.#position === undefined && this.#canStream && isCode(error, 422)) {
      this.#canStream = false;
      return;
    }
    this.#isDoubtful = true;
    if (isCode(error, 410) || isOutage(error)) this.#position = undefined;
    if (!isCode(error, 410)) this.#options.onProblem(error);
    const retryAfterMs = error instanceof KubeApiError ? error.retryAfterMs : undefined;
    await pause(this.#options.clock, backoff.next(retryAfterMs), signal);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, store, namespace } = this.#options;
    const list = store.beginList(namespace);
    const requestedAt = this.#options.clock.monotonic();
    try {
      const read = (raw: Raw) => this.#read(raw);
      const { objects, version } = await listPages(client, this.#request({}, signal), read);
      this.#fill({ list, objects, requestedAt }, version);
    } finally {
      store.abandon(list);
    }
  }

  #fill({ list, objects, requestedAt }: CompleteList<T>, version: string): void {
    const { store, onEtcdRollback } = this.#options;
    if (store.isRolledBackBy(list, objects, version)) onEtcdRollback?.();
    store.replace(list, objects, version);
    this.#position = version;
    this.#backlogEnd = "";
    this.#lastContact = requestedAt;
    this.#isSynced = true;
    this.#synced.resolve();
  }

  #moveTo(version: string): void {
    this.#position = version;
    if (compareResourceVersions(version, this.#backlogEnd) < 0) return;
    this.#lastContact = this.#options.clock.monotonic();
  }

  /** Drops the position if the server's version is older. */
  async #checkPosition(signal: AbortSignal): Promise<void> {
    if (this.#position === undefined) return;
    const head = await this.#options.client.json<ListPage<Raw>>(this.#request({ limit: 1 }, signal));
    this.#backlogEnd = head.metadata.resourceVersion;
    if (compareResourceVersions(this.#backlogEnd, this.#position) < 0) this.#position = undefined;
  }

  /** Resolves when the server ends the watch. @throws Error also if that happens before the initial list is complete */
  async #watch(signal: AbortSignal): Promise<{ readonly events: number; readonly durationMs: number }> {
    const { client, clock, store, namespace, random = Math.random } = this.#options;
    const silence = new SilenceLimit(clock, this.#path);
    const startedAt = clock.monotonic();
    let events = 0;
    let initial =
      this.#position === undefined ? new InitialList(store, namespace, clock.monotonic()) : undefined;
    try {
      const query = {
        watch: true,
        allowWatchBookmarks: true,
        ...(initial ? LIST_AS_EVENTS : { resourceVersion: this.#position }),
        timeoutSeconds: WATCH_SECONDS_LEAST + Math.floor(random() * WATCH_SECONDS_SPREAD),
      };
      const abort = AbortSignal.any([signal, silence.signal]);
      const body = await client.stream({ ...this.#request(query, abort), signal: abort });
      // A list in flight needs every event: the store's own copy does not count toward it.
      const isKnown = (version: string) => initial === undefined && store.isOurs(version);
      for await (const event of watchEvents<Raw>(body, { path: this.#path, isKnown })) {
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

  /** @returns undefined if the event completes the list */
  #handleInitial(event: WatchEvent<Raw>, initial: InitialList<T>): InitialList<T> | undefined {
    if (event.type !== "BOOKMARK") {
      for (const object of this.#read(event.object)) initial.take(event.type, object);
      return initial;
    }
    const { annotations, resourceVersion } = event.object.metadata;
    if (annotations?.[ENDED_LIST] !== "true") return initial;
    this.#fill(initial, resourceVersion);
    return undefined;
  }

  #handle(event: WatchEvent<Raw>): void {
    const { store } = this.#options;
    if (event.type === "DELETED") {
      for (const object of this.#read(event.object)) store.remove(object);
    } else if (event.type !== "BOOKMARK") {
      for (const object of this.#read(event.object)) store.apply(object);
    }
    this.#moveTo(event.object.metadata.resourceVersion);
  }

  #skip({ resourceVersion }: KnownEvent): void {
    this.#options.store.skipOurs(resourceVersion);
    this.#moveTo(resourceVersion);
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

  #request(query: KubeRequest["query"], signal: AbortSignal): KubeRequest {
    const { labelSelector, fieldSelector } = this.#options;
    return { path: this.#path, query: { ...query, labelSelector, fieldSelector }, signal };
  }
}

/** No API server responded: meanwhile etcd may have been restored, and its version may have passed our position again. */
function isOutage(error: unknown): boolean {
  return error instanceof KubeUnreachableError || (error instanceof KubeApiError && error.code >= 500);
}
