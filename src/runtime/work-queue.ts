import { Backoff } from "./backoff.ts";
import type { Clock } from "./clock.ts";

export interface WorkQueueOptions {
  readonly clock: Clock;
  /** Least time between the starts of two passes over one key; the first acts at once. */
  readonly minIntervalMs: number;
  /** Back-off of a key that fails again and again. */
  readonly retryFirstMs: number;
  readonly retryMostMs: number;
  readonly random?: () => number;
}

interface Entry {
  phase: "ready" | "processing" | "resting";
  /** Added again while it was processed or resting. */
  dirty: boolean;
  startedAt: number;
}

/**
 * Keys of things to look at, each at most once at a time.
 *
 *     add ──▶ ready ──next──▶ processing ──done──▶ resting (until minIntervalMs is over) ──▶ gone, or ready
 *
 * Guarantees:
 * - A key is never processed by two workers at once.
 * - A key added while it is processed is processed again afterwards, so no change is missed.
 * - Any number of adds between two passes is one pass.
 * - What it remembers is bounded by the keys that are under way, delayed or failing.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #ready: string[] = [];
  readonly #delayed = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  readonly #backoffs = new Map<string, Backoff>();
  readonly #waiters: (() => void)[] = [];

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  /** Keys that wait for a worker. */
  get depth(): number {
    return this.#ready.length;
  }

  add(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) this.#makeReady(key);
    else if (entry.phase !== "ready") entry.dirty = true;
  }

  /** Adds the key after a delay. Of several delays of one key the earliest counts. */
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

  /** Adds the key after a delay that grows with each failure in a row. */
  retry(key: string, leastMs = 0): void {
    const { retryFirstMs, retryMostMs, random } = this.#options;
    const backoff = this.#backoffs.get(key) ?? new Backoff(retryFirstMs, retryMostMs, random);
    this.#backoffs.set(key, backoff);
    this.addAfter(key, Math.max(leastMs, backoff.next()));
  }

  /** The key succeeded: its next failure starts the back-off anew. */
  forget(key: string): void {
    this.#backoffs.delete(key);
  }

  /** The next key, which the caller must give back by `done`; `undefined` once the signal is aborted. */
  async next(signal: AbortSignal): Promise<string | undefined> {
    while (!signal.aborted) {
      const key = this.#ready.shift();
      if (key !== undefined) {
        this.#entries.set(key, {
          phase: "processing",
          dirty: false,
          startedAt: this.#options.clock.monotonic(),
        });
        return key;
      }
      await this.#wait(signal);
    }
    return undefined;
  }

  done(key: string): void {
    const { clock, minIntervalMs } = this.#options;
    const entry = this.#entries.get(key);
    if (entry?.phase !== "processing") return;
    const restMs = entry.startedAt + minIntervalMs - clock.monotonic();
    if (restMs > 0) {
      entry.phase = "resting";
      clock.after(restMs, () => this.#settle(key, entry));
    } else {
      this.#settle(key, entry);
    }
  }

  #settle(key: string, entry: Entry): void {
    if (entry.dirty) this.#makeReady(key);
    else this.#entries.delete(key);
  }

  #makeReady(key: string): void {
    this.#entries.set(key, { phase: "ready", dirty: false, startedAt: 0 });
    this.#ready.push(key);
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
