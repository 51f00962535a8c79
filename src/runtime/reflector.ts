import { isCode, KubeApiError, KubeUnreachableError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";
import { type Clock, pause } from "./clock.ts";
import type { Informer } from "./informer.ts";
import { type CompleteList, INITIAL_EVENTS_END, InitialList } from "./initial-list.ts";
import { ListWatch, type ListWatchOptions } from "./list-watch.ts";
import { type Outage, OutagePauses } from "./outage.ts";
import { RetryBackoff, type RetryDelays } from "./retry-backoff.ts";
import { SilenceLimit } from "./silence-limit.ts";
import { byKey, type Store } from "./store.ts";
import { WatchPosition } from "./watch-position.ts";
import type { KnownEvent, WatchEvent } from "./watch-stream.ts";

/** The server may end a watch at any time. After a watch shorter than this, the next one does not start at once. */
const SHORT_WATCH_MS = 1000;

export interface ReflectorOptions<T extends KubeObject, Raw extends KubeObject = KubeObject>
  extends ListWatchOptions<Raw> {
  /** For a watch of all namespaces: returns false for a namespace whose objects are dropped before `project`. */
  readonly includes?: (namespace: string) => boolean;
  readonly store: Store<T>;
  /** Reduces an object to the fields that the store keeps. */
  readonly project: (raw: Raw) => T;
  readonly clock: Clock;
  /** Somebody may remove the kind from the cluster, and it has no objects while the server responds 404. */
  readonly isRemovable?: boolean;
  /** The default is 0.8 to 1.6 s at first, and 15 to 30 s at most. */
  readonly retryDelays?: RetryDelays | undefined;
  /** Shared by the watches of a process. By default, the watch has its own. */
  readonly outage?: Outage | undefined;
  /** A problem with the API server, already being retried, or an `UnreadableObjectError`. */
  readonly onProblem: (problem: unknown) => void;
  /**
   * Called when etcd was restored from a snapshot, before the store changes. The stores of other kinds may still hold
   * objects from after the snapshot.
   */
  readonly onEtcdRollback?: (() => void) | undefined;
}

/**
 * Keeps a store equal to the API server's objects of one kind: lists them, then watches them from that version.
 *
 *     list ──▶ watch ──ended──▶ watch from `lastSyncResourceVersion`
 *       ▲        └─ relist after 410, an outage, an etcd rollback or 90 s without contact ─┐
 *       └──────────────────────────────────────────────────────────────────────────────────┘
 *
 * Guarantees:
 * - Only the signal ends it. After an error it calls `onProblem`, except for a 410, and retries with a backoff of 0.8
 *   to 30 s, which starts over after two minutes without an error. So no server can make it list more than ten times a
 *   minute. If the server rejects the initial list as events (422), it lists page by page at once.
 * - When another watch of the process has recovered (`outage`), it makes an additional retry at once, but not before
 *   the time in Retry-After. This at most doubles the number of lists.
 * - A list has no resource version in its request, so it is a consistent read. It replaces the contents of the store
 *   and starts a new epoch, even if it is older (etcd restored from a snapshot: `onEtcdRollback`). It arrives as the
 *   first events of the watch (`WatchList`), with one unreduced object in memory at a time, or else page by page.
 * - The event of a change is skipped without parsing if the store already has it from the response to one of our calls.
 * - If the server ends a watch, which is normal, the next one continues from the last version. It starts at once, but
 *   at most one watch a second, and with the backoff if the watch ended within a second without an event. It is an
 *   error if the server ends the watch before the initial list is complete.
 * - After an outage or a 410 it relists, and also if a watch ends, for any reason, 90 s or more after the last contact:
 *   after silence (a half-open connection), or if a proxy cuts every watch before its first bookmark. After any other
 *   error, it compares its position with that of the server before it continues.
 * - While a removable kind is not served (404), the store is empty and current, and only the first 404 is a problem.
 * - `lastContact` does not advance while the store is not current: neither during a list nor during the backlog of an
 *   interrupted watch.
 */
export class Reflector<T extends KubeObject, Raw extends KubeObject = KubeObject> implements Informer {
  readonly resource: string;
  readonly #options: ReflectorOptions<T, Raw>;
  readonly #listWatch: ListWatch<Raw>;
  readonly #synced = Promise.withResolvers<void>();
  readonly #position: WatchPosition;
  readonly #pauses: OutagePauses;
  /** False after the server rejected a list as events. */
  #canStreamLists = true;
  #isSynced = false;
  #isRemoved = false;

  constructor(options: ReflectorOptions<T, Raw>) {
    this.resource = options.resource.plural;
    this.#options = options;
    this.#listWatch = new ListWatch(options);
    this.#pauses = new OutagePauses(options.clock, options.outage);
    this.#position = new WatchPosition(options.clock);
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
    const { clock, retryDelays, random } = this.#options;
    const backoff = new RetryBackoff(clock, retryDelays, random);
    while (!signal.aborted) {
      try {
        await this.#listAndWatch(backoff, signal);
      } catch (error) {
        if (!signal.aborted) await this.#recover(error, backoff, signal);
      }
    }
  }

  /** Runs one watch, after the check or the list that it needs. */
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
    const isKnown = isExpired || (this.#isRemoved && isCode(error, 404));
    if (this.#options.isRemovable && isCode(error, 404)) this.#removeAll();
    else if (isExpired || isOutage(error)) this.#position.discard();
    else this.#position.requireCheck();
    if (!isKnown) this.#options.onProblem(error);
    const retryAfterMs = error instanceof KubeApiError ? error.retryAfterMs : undefined;
    await this.#pauses.pause(backoff, retryAfterMs ?? 0, signal);
  }

  /** The kind was removed with all of its objects. It may come back, so the next attempt is a list. */
  #removeAll(): void {
    const { store, namespace, clock } = this.#options;
    store.replace(store.beginList(namespace), new Map(), "");
    this.#position.moveToList("", clock.monotonic());
    this.#position.discard();
    this.#setSynced();
    this.#isRemoved = true;
  }

  async #checkPosition(signal: AbortSignal): Promise<void> {
    this.#position.check(await this.#listWatch.version(signal));
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { store, namespace } = this.#options;
    const list = store.beginList(namespace);
    const requestedAt = this.#options.clock.monotonic();
    try {
      const read = (raw: Raw) => this.#read(raw);
      const { objects, version } = await this.#listWatch.list(read, signal);
      this.#syncWith({ list, objects: byKey(objects), requestedAt }, version);
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
    this.#pauses.recovered();
    this.#setSynced();
    this.#isRemoved = false;
  }

  #setSynced(): void {
    this.#isSynced = true;
    this.#synced.resolve();
  }

  /** Resolves when the server ends the watch. @throws Error also if that happens before the initial list is complete */
  async #watch(signal: AbortSignal): Promise<{ readonly events: number; readonly durationMs: number }> {
    const { clock, store, namespace } = this.#options;
    const { path } = this.#listWatch;
    const silence = new SilenceLimit(clock, path);
    const startedAt = clock.monotonic();
    let events = 0;
    let initial = this.#position.needsList ? new InitialList(store, namespace, startedAt) : undefined;
    try {
      const abort = AbortSignal.any([signal, silence.signal]);
      // An initial list needs every object, even if the store already has it.
      const isKnown = (version: string) => initial === undefined && store.isOurs(version);
      const after = this.#position.lastSyncResourceVersion;
      const stream = await this.#listWatch.watch(after, isKnown, abort);
      if (!initial) this.#pauses.recovered();
      for await (const event of stream) {
        silence.restart();
        if (event.type === "KNOWN") this.#skip(event);
        else if (initial) initial = this.#handleInitial(event, initial);
        else this.#handle(event);
        events += 1;
      }
      if (initial) throw new Error(`${path}: the server ended the initial list before it was complete`);
      return { events, durationMs: clock.monotonic() - startedAt };
    } finally {
      silence.end();
      initial?.abandon();
      this.#position.endWatch();
    }
  }

  /** @returns undefined if the event completes the list */
  #handleInitial(event: WatchEvent<Raw>, initial: InitialList<T>): InitialList<T> | undefined {
    if (event.type !== "BOOKMARK") {
      this.#change(event, initial);
      return initial;
    }
    const { annotations, resourceVersion } = event.object.metadata;
    if (annotations?.[INITIAL_EVENTS_END] !== "true") return initial;
    this.#syncWith(initial, resourceVersion);
    return undefined;
  }

  #handle(event: WatchEvent<Raw>): void {
    if (event.type !== "BOOKMARK") this.#change(event, this.#options.store);
    this.#position.advance(event.object.metadata.resourceVersion);
  }

  #change({ type, object: raw }: WatchEvent<Raw>, objects: Pick<Store<T>, "apply" | "remove">): void {
    if (!this.#isIncluded(raw)) return;
    const [object] = type === "DELETED" ? [] : this.#read(raw);
    if (object) objects.apply(object);
    // An object that cannot be read is removed too, because a list would also omit it.
    else objects.remove(raw);
  }

  #isIncluded({ metadata }: Raw): boolean {
    return this.#options.includes?.(metadata.namespace ?? "") ?? true;
  }

  #skip({ resourceVersion }: KnownEvent): void {
    this.#options.store.skipOurs(resourceVersion);
    this.#position.advance(resourceVersion);
  }

  /** Empty if the object is not included or cannot be read: one malformed object must not block all others. */
  #read(raw: Raw): readonly T[] {
    if (!this.#isIncluded(raw)) return [];
    try {
      return [this.#options.project(raw)];
    } catch (cause) {
      const { namespace, name } = raw.metadata;
      const message = `${this.#listWatch.path}: ${namespace}/${name} cannot be read, so it counts as deleted`;
      this.#options.onProblem(new UnreadableObjectError(message, { cause }));
      return [];
    }
  }
}

/** One object is malformed. The watch goes on. */
export class UnreadableObjectError extends Error {
  override readonly name = "UnreadableObjectError";
}

/**
 * No API server responded, or one responded with a 5xx. Meanwhile etcd may have been restored, and its version may have
 * passed our position again.
 */
function isOutage(error: unknown): boolean {
  return error instanceof KubeUnreachableError || (error instanceof KubeApiError && error.code >= 500);
}
