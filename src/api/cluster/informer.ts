import { isCode, isWithoutRoles } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { Resource } from "../../kube/paths.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ReflectorClient } from "../../runtime/list-watch.ts";
import type { Outage } from "../../runtime/outage.ts";
import { Reflector, UnreadableObjectError } from "../../runtime/reflector.ts";
import { type Change, type Indexes, Store } from "../../runtime/store.ts";
import type { Logger } from "../../telemetry/log.ts";
import { apiError } from "../errors.ts";
import type { CacheState } from "../metrics.ts";

/** Name and only value of the index of malformed objects. */
const MALFORMED = "malformed";

export interface InformerOptions<T extends KubeObject, Raw extends KubeObject> {
  /** Plural name for people, such as `API keys`. */
  readonly what: string;
  readonly resource: Resource<Raw>;
  /** All namespaces if absent. */
  readonly namespace: string | undefined;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly project: (raw: Raw) => T;
  readonly indexes?: Indexes<T>;
  /** Returns the problem of a malformed object; `undefined` for a well-formed one. */
  readonly problemOf?: (object: T) => string | undefined;
  /** Requests are rejected while the cache is older than this, which also bounds how long a revoked key works. */
  readonly maxAgeMs: number;
  readonly client: ReflectorClient;
  readonly clock: Clock;
  /** Shared by all caches. */
  readonly outage: Outage;
  readonly log: Logger;
}

/** A watch of one kind, with its store and the age of the store. */
export class Informer<T extends KubeObject, Raw extends KubeObject> {
  readonly what: string;
  readonly #of: Pick<InformerOptions<T, Raw>, "resource" | "namespace">;
  readonly #maxAgeMs: number;
  readonly #clock: Clock;
  readonly #store: Store<T>;
  readonly #reflector: Reflector<T, Raw>;
  readonly #createdAt: number;
  /** The last refusal, with its monotonic time. */
  #refusal: { readonly message: string; readonly atMs: number } | undefined;

  constructor({ what, log, indexes, problemOf, ...options }: InformerOptions<T, Raw>) {
    this.what = what;
    this.#of = options;
    this.#maxAgeMs = options.maxAgeMs;
    this.#clock = options.clock;
    this.#createdAt = options.clock.monotonic();
    this.#store = new Store<T>({
      ...indexes,
      ...(problemOf && { [MALFORMED]: (object) => (problemOf(object) === undefined ? [] : [MALFORMED]) }),
    });
    this.#reflector = new Reflector<T, Raw>({
      ...options,
      store: this.#store,
      onProblem: (err) => {
        if (this.#recordRefusal(err)) return;
        const isOfObject = err instanceof UnreadableObjectError;
        log.warn(
          { err },
          isOfObject ? `one of the ${what} is malformed` : `cannot watch ${what}; trying again`,
        );
      },
    });
  }

  get isSynced(): boolean {
    return this.#reflector.isSynced;
  }

  /**
   * The API server has refused this process the objects (403, 404), possibly for good: the namespace may be deleted, and
   * its Role with it. It stays true during a later outage, so that a ready process stays ready.
   */
  get wasRefused(): boolean {
    return this.#refusal !== undefined;
  }

  get state(): CacheState {
    const { resource, namespace = "" } = this.#of;
    const ageMs = Math.min(this.#ageMs, this.#clock.monotonic() - this.#createdAt);
    const malformed = this.by(MALFORMED, MALFORMED).length;
    return { resource: resource.plural, namespace, isSynced: this.isSynced, ageMs, malformed };
  }

  /** Runs until the signal is aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void> {
    return this.#reflector.run(signal);
  }

  /** False if the cache was confirmed too long ago, or is not filled yet. */
  get isFresh(): boolean {
    return this.#ageMs <= this.#maxAgeMs;
  }

  /** @throws ApiError 503 unless the cache is fresh */
  requireFresh(): void {
    if (this.isFresh) return;
    const cause = new Error(
      this.isSynced
        ? `the cache of ${this.what} is ${Math.round(this.#ageMs / 1000)} s old`
        : `${this.what} have not been read from the cluster yet`,
    );
    throw apiError("Unavailable").with({ cause });
  }

  get(namespace: string, name: string): T | undefined {
    return this.#store.get(`${namespace}/${name}`);
  }

  /** The objects with this value in an index. */
  by(index: string, value: string): T[] {
    return this.#store.by(index, value);
  }

  /** Stores the response to one of our writes, so that a caller that got a 200 sees the change in the next read. */
  observe(object: T): void {
    this.#store.observe(object);
  }

  onChange(listener: (change: Change<T>) => void): void {
    this.#store.onChange(listener);
  }

  /** In milliseconds; Infinity before the cache is filled. */
  get #ageMs(): number {
    return this.#clock.monotonic() - this.#reflector.lastContact;
  }

  /**
   * A refusal can be repeated for as long as the process runs, so the same one is reported once until the next contact.
   *
   * @returns whether it was reported before
   */
  #recordRefusal(err: unknown): boolean {
    if (!isCode(err, 403) && !isCode(err, 404)) return false;
    const last = this.#refusal;
    const isRepeated = last?.message === err.message && this.#reflector.lastContact <= last.atMs;
    // Soon after an outage, or from an API server without its roles, a refusal does not show a missing permission.
    if (!err.isSoonAfterOutage && !isWithoutRoles(err))
      this.#refusal = { message: err.message, atMs: this.#clock.monotonic() };
    return isRepeated;
  }
}
