import type { KubeClient, KubeRequest } from "../kube/client.ts";
import { isCode, KubeApiError, KubeUnreachableError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";
import { collectionPath, type Resource } from "../kube/paths.ts";
import { Backoff } from "./backoff.ts";
import { type Clock, pause } from "./clock.ts";
import { ENDED_LIST, InitialList, LIST_AS_EVENTS } from "./initial-list.ts";
import { type ListPage, listPages } from "./list-pages.ts";
import { compareResourceVersions } from "./resource-version.ts";
import type { ListInFlight, Store } from "./store.ts";
import { type KnownEvent, type WatchEvent, watchEvents } from "./watch-stream.ts";

/** A watch is asked to end by itself after 10 to 20 minutes, at random, so that watches do not end together. */
const WATCH_SECONDS_LEAST = 600;
const WATCH_SECONDS_SPREAD = 600;

/** The API server sends a bookmark a minute; silence of three means that the connection is dead. */
const SILENCE_MS = 180_000;

const BACKOFF_FIRST_MS = 200;
const BACKOFF_MOST_MS = 10_000;

/** What a reflector needs of the client. */
export type ReflectorClient = Pick<KubeClient, "json" | "stream">;

export interface ReflectorOptions<T extends KubeObject, Raw extends KubeObject = KubeObject> {
  readonly client: ReflectorClient;
  readonly resource: Resource;
  /** All namespaces when absent. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly store: Store<T>;
  /** Keeps what is read of an object, and nothing else in memory. */
  readonly project: (raw: Raw) => T;
  readonly clock: Clock;
  readonly random?: () => number;
  /** A problem with the API server, already being retried. */
  readonly onProblem: (problem: unknown) => void;
  /**
   * The cluster's history was taken back (etcd put back from a snapshot). Called before the store shows it; what
   * is known of other kinds may still be of the future that is no more.
   */
  readonly onTakenBack?: (() => void) | undefined;
}

/** A reflector as its owner sees it, whatever it reflects. */
export interface Informer {
  /** Resolves when the store has been filled for the first time. */
  readonly synced: Promise<void>;
  readonly isSynced: boolean;
  /** Monotonic time of the last proof that the store is fresh: a list, an event or a bookmark. */
  readonly lastContact: number;
  /** Runs until the signal is aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Keeps a store equal to what the API server has of one kind: list, then watch from there, for ever.
 *
 *     list ──▶ watch ──ended──▶ watch from the last version seen
 *       ▲        └─ 410, silence, or the server's history is older than ours ─┐
 *       └─────────────────────────────────────────────────────────────────────┘
 *
 * Guarantees:
 * - No error ends it; only the signal does. Errors are backed off (0.2 to 10 s, anew after each event) and
 *   told to `onProblem`.
 * - A list asks for no resource version, so it is a consistent read: the truth, which starts a new epoch,
 *   also when it is older than what was known (etcd put back from a snapshot: `onTakenBack`). It comes as the
 *   first events of the watch (Kubernetes 1.32), one object in memory at a time, or else page by page.
 * - The event of a write of ours whose answer is in the store already is passed over, unread.
 * - A watch that the server ends, even after an instant, goes on from the last version: that is normal.
 * - After an outage it lists anew. After any other error, and after silence (a half-open connection), it does
 *   not trust its position before it has compared it.
 */
export class Reflector<T extends KubeObject, Raw extends KubeObject = KubeObject> implements Informer {
  readonly #options: ReflectorOptions<T, Raw>;
  readonly #path: string;
  readonly #synced = Promise.withResolvers<void>();
  #position: string | undefined;
  #isDoubtful = false;
  /** Whether the server can tell a list as events: asked once. */
  #canStream = true;
  #lastContact = Number.NEGATIVE_INFINITY;
  #isSynced = false;

  constructor(options: ReflectorOptions<T, Raw>) {
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
    const backoff = new Backoff(BACKOFF_FIRST_MS, BACKOFF_MOST_MS, this.#options.random);
    while (!signal.aborted) {
      try {
        await this.#follow(backoff, signal);
      } catch (error) {
        if (!signal.aborted) await this.#recover(error, backoff, signal);
      }
    }
  }

  /** One watch, and before it whatever it needs to know where to begin. */
  async #follow(backoff: Backoff, signal: AbortSignal): Promise<void> {
    if (this.#isDoubtful) await this.#checkPosition(signal);
    this.#isDoubtful = false;
    if (this.#position === undefined && !this.#canStream) await this.#list(signal);
    const events = await this.#watch(signal, backoff);
    if (events === 0) await pause(this.#options.clock, backoff.next(), signal);
  }

  async #recover(error: unknown, backoff: Backoff, signal: AbortSignal): Promise<void> {
    if (this.#position === undefined && this.#canStream && isCode(error, 422)) {
      this.#canStream = false;
      return;
    }
    this.#isDoubtful = true;
    if (isCode(error, 410) || isOutage(error)) this.#position = undefined;
    if (!isCode(error, 410)) this.#options.onProblem(error);
    await pause(this.#options.clock, retryDelay(error, backoff), signal);
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, store, namespace } = this.#options;
    const list = store.beginList(namespace);
    try {
      const read = (raw: Raw) => this.#read(raw);
      const { objects, version } = await listPages(client, this.#request({}, signal), read);
      this.#fill(list, objects, version);
    } finally {
      store.abandon(list);
    }
  }

  #fill(list: ListInFlight, objects: readonly T[], version: string): void {
    const { store, onTakenBack } = this.#options;
    if (store.isTakenBackBy(list, objects, version)) onTakenBack?.();
    store.replace(list, objects, version);
    this.#moveTo(version);
    this.#isSynced = true;
    this.#synced.resolve();
  }

  #moveTo(version: string): void {
    this.#position = version;
    this.#lastContact = this.#options.clock.monotonic();
  }

  /** Gives the position up if the server's present is before it. */
  async #checkPosition(signal: AbortSignal): Promise<void> {
    if (this.#position === undefined) return;
    const head = await this.#options.client.json<ListPage<Raw>>(this.#request({ limit: 1 }, signal));
    if (compareResourceVersions(head.metadata.resourceVersion, this.#position) < 0)
      this.#position = undefined;
  }

  /** @returns how many events came until the server ended the watch */
  async #watch(signal: AbortSignal, backoff: Backoff): Promise<number> {
    const { client, clock, store, namespace, random = Math.random } = this.#options;
    const silence = new AbortController();
    const expectEvent = () =>
      clock.after(SILENCE_MS, () => silence.abort(new Error(`watch of ${this.#path} fell silent`)));
    let cancelSilence = expectEvent();
    let events = 0;
    let initial = this.#position === undefined ? new InitialList(store, namespace) : undefined;
    try {
      const query = {
        watch: true,
        allowWatchBookmarks: true,
        ...(initial ? LIST_AS_EVENTS : { resourceVersion: this.#position }),
        timeoutSeconds: WATCH_SECONDS_LEAST + Math.floor(random() * WATCH_SECONDS_SPREAD),
      };
      const abort = AbortSignal.any([signal, silence.signal]);
      const body = await client.stream({ ...this.#request(query, abort), signal: abort });
      // A list in flight has to be told of everything.
      const isKnown = (version: string) => initial === undefined && store.isOurs(version);
      for await (const event of watchEvents<Raw>(body, { path: this.#path, isKnown })) {
        cancelSilence();
        cancelSilence = expectEvent();
        if (event.type === "KNOWN") this.#skip(event);
        else if (initial) initial = this.#handleInitial(event, initial);
        else this.#handle(event);
        backoff.reset();
        events += 1;
      }
      return events;
    } finally {
      cancelSilence();
      initial?.abandon();
    }
  }

  /** @returns undefined when that was the last of them */
  #handleInitial(event: WatchEvent<Raw>, initial: InitialList<T>): InitialList<T> | undefined {
    if (event.type !== "BOOKMARK") {
      for (const object of this.#read(event.object)) initial.take(event.type, object);
      this.#lastContact = this.#options.clock.monotonic();
      return initial;
    }
    const { annotations, resourceVersion } = event.object.metadata;
    if (annotations?.[ENDED_LIST] !== "true") return initial;
    this.#fill(initial.list, initial.objects, resourceVersion);
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
    this.#options.store.passOurs(resourceVersion);
    this.#moveTo(resourceVersion);
  }

  /** None where it cannot be read: one object must not stand between us and all others. */
  #read(raw: Raw): readonly T[] {
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

/** Nobody was there, or nobody behind a balancer: etcd may have been put back, and by now be past our position again. */
function isOutage(error: unknown): boolean {
  return error instanceof KubeUnreachableError || (error instanceof KubeApiError && error.code >= 500);
}

function retryDelay(error: unknown, backoff: Backoff): number {
  const own = backoff.next();
  return error instanceof KubeApiError ? Math.max(own, error.retryAfterMs ?? 0) : own;
}
