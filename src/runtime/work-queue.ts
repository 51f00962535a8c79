import { Backoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";
import { TokenBucket } from "./token-bucket.ts";

/** Receives what happens in a queue, for metrics. Must not throw. */
export interface QueueObserver {
  /** A key was added that was not waiting. */
  added(): void;
  /** A worker took a key. The wait does not include the time before any worker took keys. */
  began(waitedMs: number): void;
  ended(workedMs: number): void;
  retried(): void;
}

const NO_OBSERVER: QueueObserver = {
  added: () => undefined,
  began: () => undefined,
  ended: () => undefined,
  retried: () => undefined,
};

/** Changes that concern many keys have low priority, so that other keys do not wait for all of them. */
export type Priority = "normal" | "low";

/** At least one in this many keys is taken from low priority while any waits there, so that none waits forever. */
const LOW_EACH = 4;

/** For the retries of all keys together: a server that has just recovered must not be overloaded again. */
const RETRIES = { requests: 100, windowMs: 2000 };

export interface WorkQueueOptions {
  readonly clock: Clock;
  readonly observer?: QueueObserver;
  /** Least time between the starts of two reconciles of one key; the first one starts at once. */
  readonly minIntervalMs: number;
  /** Backoff of a key that fails repeatedly. */
  readonly retryFirstMs: number;
  readonly retryMostMs: number;
  readonly random?: () => number;
}

interface Entry {
  phase: "ready" | "processing" | "resting";
  priority: Priority;
  /** Time since which the key waits. `undefined` while it is processed or rests, unless it was added again. */
  addedAt: number | undefined;
  startedAt: number;
  /** Not to be processed again before this time. */
  restsUntil: number;
}

/**
 * Keys of objects to reconcile, each at most once at a time.
 *
 *     add ──▶ ready ──next──▶ processing ──done──▶ resting (for minIntervalMs, or as requested) ──▶ gone, or ready
 *
 * Guarantees:
 * - A key is never processed by two workers at the same time.
 * - A key that is added while it is processed is processed again afterwards, so no change is missed.
 * - Any number of adds between two reconciles leads to one reconcile, with the highest of their priorities.
 * - Keys of normal priority come first, except that every fourth key is of low priority if one waits. Keys of one
 *   priority come in the order in which they became ready with it.
 * - A failing key is retried after a delay that doubles. One rate limit applies to the retries of all keys, except
 *   those that have an earlier delay anyway.
 * - A key that must rest before its retry is not processed earlier, even if it is added again.
 * - The memory of the queue is bounded by the keys that are waiting, processed, resting, delayed or failing.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #observer: QueueObserver;
  readonly #retries = new TokenBucket(RETRIES);
  readonly #entries = new Map<string, Entry>();
  readonly #ready: Readonly<Record<Priority, Set<string>>> = { normal: new Set(), low: new Set() };
  #taken = 0;
  readonly #delayed = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  readonly #backoffs = new Map<string, Backoff>();
  readonly #waiters: (() => void)[] = [];
  /** The first call of `next`. A process may be on standby for days before that. */
  #servedSince: number | undefined;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
    this.#observer = options.observer ?? NO_OBSERVER;
  }

  /** Number of keys that wait for a worker. */
  get depth(): number {
    return this.#ready.normal.size + this.#ready.low.size;
  }

  /** Age of each running reconcile in milliseconds. */
  underWay(): readonly number[] {
    const now = this.#options.clock.monotonic();
    const processed = [...this.#entries.values()].filter(({ phase }) => phase === "processing");
    return processed.map(({ startedAt }) => now - startedAt);
  }

  add(key: string, priority: Priority = "normal"): void {
    const entry = this.#entries.get(key);
    if (entry?.addedAt !== undefined) {
      if (priority === "normal") this.#raise(key, entry);
      return;
    }
    this.#observer.added();
    const now = this.#options.clock.monotonic();
    if (entry) {
      entry.addedAt = now;
      entry.priority = priority;
    } else {
      this.#makeReady(key, now, priority);
    }
  }

  /** Adds the key after a delay. If a key has several delays, the earliest counts. */
  addAfter(key: string, delayMs: number): void {
    const { clock } = this.#options;
    const at = clock.monotonic() + delayMs;
    const known = this.#delayed.get(key);
    if (known && known.at <= at) return;
    known?.cancel();
    const cancel = clock.after(delayMs, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { at, cancel });
  }

  /**
   * Adds each key that has a delay, and each one that may get one because it is being processed, with low priority. Call
   * it when the delays may have become too long.
   */
  hasten(): void {
    for (const [key, { phase }] of this.#entries) if (phase === "processing") this.add(key, "low");
    for (const key of this.#delayed.keys()) this.add(key, "low");
  }

  /**
   * Adds the key after a delay that grows with each failure in a row.
   *
   * @param leastMs least time before the retry. If the key is being processed, adding it again does not shorten this.
   */
  retry(key: string, leastMs = 0): void {
    const { clock, retryFirstMs, retryMostMs, random } = this.#options;
    this.#observer.retried();
    const entry = this.#entries.get(key);
    if (entry) entry.restsUntil = Math.max(entry.restsUntil, clock.monotonic() + leastMs);
    const backoff = this.#backoffs.get(key) ?? new Backoff(retryFirstMs, retryMostMs, random);
    this.#backoffs.set(key, backoff);
    const now = clock.monotonic();
    const delayMs = Math.max(leastMs, backoff.next());
    // A key that is added before its turn takes none from the other keys.
    const known = this.#delayed.get(key);
    if (known && known.at <= now + Math.max(delayMs, this.#retries.msUntilTurn(now))) return;
    this.addAfter(key, Math.max(delayMs, this.#retries.reserve(now)));
  }

  /** Call it when the key succeeded: its backoff starts over with the next failure. */
  forget(key: string): void {
    this.#backoffs.delete(key);
  }

  /** The next key, for which the caller must call `done`; undefined once the signal is aborted. */
  async next(signal: AbortSignal): Promise<string | undefined> {
    this.#servedSince ??= this.#options.clock.monotonic();
    while (!signal.aborted) {
      const key = this.#shift();
      if (key !== undefined) {
        const startedAt = this.#options.clock.monotonic();
        const addedAt = this.#entries.get(key)?.addedAt ?? startedAt;
        this.#observer.began(startedAt - Math.max(addedAt, this.#servedSince));
        const restsUntil = startedAt + this.#options.minIntervalMs;
        this.#entries.set(key, {
          phase: "processing",
          priority: "normal",
          addedAt: undefined,
          startedAt,
          restsUntil,
        });
        return key;
      }
      await this.#wait(signal);
    }
    return undefined;
  }

  done(key: string): void {
    const { clock } = this.#options;
    const entry = this.#entries.get(key);
    if (entry?.phase !== "processing") return;
    const now = clock.monotonic();
    this.#observer.ended(now - entry.startedAt);
    const restMs = entry.restsUntil - now;
    if (restMs > 0) {
      entry.phase = "resting";
      clock.after(restMs, () => this.#settle(key, entry));
    } else {
      this.#settle(key, entry);
    }
  }

  #settle(key: string, entry: Entry): void {
    if (entry.addedAt === undefined) this.#entries.delete(key);
    else this.#makeReady(key, entry.addedAt, entry.priority);
  }

  /** A key that has normal priority keeps its place. */
  #raise(key: string, entry: Entry): void {
    if (this.#ready.low.delete(key)) this.#ready.normal.add(key);
    entry.priority = "normal";
  }

  #shift(): string | undefined {
    const { normal, low } = this.#ready;
    const isLowFirst = normal.size === 0 || (low.size > 0 && this.#taken % LOW_EACH === LOW_EACH - 1);
    const from = isLowFirst ? low : normal;
    const [key] = from;
    if (key === undefined) return undefined;
    from.delete(key);
    this.#taken += 1;
    return key;
  }

  #makeReady(key: string, addedAt: number, priority: Priority): void {
    this.#entries.set(key, { phase: "ready", priority, addedAt, startedAt: 0, restsUntil: 0 });
    this.#ready[priority].add(key);
    this.#waiters.shift()?.();
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal.removeEventListener("abort", end);
        const index = this.#waiters.indexOf(end);
        if (index !== -1) this.#waiters.splice(index, 1);
        resolve();
      };
      signal.addEventListener("abort", end);
      this.#waiters.push(end);
    });
  }
}
