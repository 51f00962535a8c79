import type { KubeObject } from "../kube/objects.ts";
import type { Resource } from "../kube/paths.ts";
import type { Clock } from "../runtime/clock.ts";
import { Reflector, type ReflectorClient } from "../runtime/reflector.ts";
import { type Change, type Indexes, Store } from "../runtime/store.ts";
import type { Logger } from "../telemetry/log.ts";
import type { CacheState } from "./metrics.ts";
import { unavailable } from "./problem.ts";

/** An index of those that could not be read, all of them under the same value. */
const MALFORMED = "malformed";

export interface CacheOptions<T extends KubeObject, Raw extends KubeObject> {
  /** For people, in the plural: `API keys`. */
  readonly what: string;
  readonly resource: Resource;
  /** All namespaces when absent. */
  readonly namespace: string | undefined;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly project: (raw: Raw) => T;
  readonly indexes?: Indexes<T>;
  /** Why an object cannot be read, if so. */
  readonly problemOf?: (object: T) => string | undefined;
  /** When it is older than this it is not believed; so long, too, can a revoked key live. */
  readonly maxAgeMs: number;
  readonly client: ReflectorClient;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The objects of one kind, kept up to date by a watch, and how far they can be believed. */
export class Cache<T extends KubeObject, Raw extends KubeObject> {
  readonly what: string;
  readonly #of: Pick<CacheOptions<T, Raw>, "resource" | "namespace">;
  readonly #maxAgeMs: number;
  readonly #clock: Clock;
  readonly #store: Store<T>;
  readonly #reflector: Reflector<T, Raw>;

  constructor({ what, log, indexes, problemOf, ...options }: CacheOptions<T, Raw>) {
    this.what = what;
    this.#of = options;
    this.#maxAgeMs = options.maxAgeMs;
    this.#clock = options.clock;
    this.#store = new Store<T>({
      ...indexes,
      ...(problemOf && { [MALFORMED]: (object) => (problemOf(object) === undefined ? [] : [MALFORMED]) }),
    });
    this.#reflector = new Reflector<T, Raw>({
      ...options,
      store: this.#store,
      onProblem: (err) => log.warn({ err }, `cannot watch ${what}; trying again`),
    });
  }

  get isSynced(): boolean {
    return this.#reflector.isSynced;
  }

  get state(): CacheState {
    const { resource, namespace = "" } = this.#of;
    const ageMs = this.#clock.monotonic() - this.#reflector.lastContact;
    const malformed = this.by(MALFORMED, MALFORMED).length;
    return { resource: resource.plural, namespace, isSynced: this.isSynced, ageMs, malformed };
  }

  /** Until the signal is aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void> {
    return this.#reflector.run(signal);
  }

  /** @throws Problem 503 if the last proof that this is how things are is too old, or there was none yet */
  requireFresh(): void {
    const ageMs = this.#clock.monotonic() - this.#reflector.lastContact;
    if (ageMs <= this.#maxAgeMs) return;
    const cause = new Error(
      this.isSynced
        ? `what is known of ${this.what} is ${Math.round(ageMs / 1000)} s old`
        : `${this.what} have not been read from the cluster yet`,
    );
    throw unavailable("The service is temporarily unavailable. Try again shortly.", { cause });
  }

  get(namespace: string, name: string): T | undefined {
    return this.#store.get(`${namespace}/${name}`);
  }

  /** Those whose index function gave this value. */
  by(index: string, value: string): T[] {
    return this.#store.by(index, value);
  }

  /** The answer to a write of ours: whoever got a 200 sees it in the next read. */
  observe(object: T): void {
    this.#store.observe(object);
  }

  onChange(listener: (change: Change<T>) => void): void {
    this.#store.onChange(listener);
  }
}
