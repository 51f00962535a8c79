import type { Clock } from "./clock.ts";

/** The API server sends a bookmark every minute, so a connection that is silent for three minutes counts as dead. */
const SILENCE_MS = 180_000;

/** Aborts a watch that has become silent: a half-open connection reports no error. */
export class SilenceLimit {
  readonly #clock: Clock;
  readonly #path: string;
  readonly #silence = new AbortController();
  #lastEventAtMs: number;
  #cancel: () => void;

  constructor(clock: Clock, path: string) {
    this.#clock = clock;
    this.#path = path;
    this.#lastEventAtMs = clock.monotonic();
    this.#cancel = this.#after(SILENCE_MS);
  }

  get signal(): AbortSignal {
    return this.#silence.signal;
  }

  /** Call it for each event. It leaves the timer alone: restarting it would take longer than handling the event. */
  restart(): void {
    this.#lastEventAtMs = this.#clock.monotonic();
  }

  end(): void {
    this.#cancel();
  }

  #after(ms: number): () => void {
    return this.#clock.after(ms, () => {
      const restMs = this.#lastEventAtMs + SILENCE_MS - this.#clock.monotonic();
      if (restMs > 0) this.#cancel = this.#after(restMs);
      else this.#silence.abort(new Error(`the watch of ${this.#path} was silent for ${SILENCE_MS / 1000} s`));
    });
  }
}
