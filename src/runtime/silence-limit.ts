import type { Clock } from "./clock.ts";

/** The API server sends a bookmark every minute, so after three minutes of silence the connection is dead. */
const SILENCE_MS = 180_000;

/** Aborts a watch that has become silent: a half-open connection reports no error. */
export class SilenceLimit {
  readonly #clock: Clock;
  readonly #path: string;
  readonly #silence = new AbortController();
  #cancel: () => void;

  constructor(clock: Clock, path: string) {
    this.#clock = clock;
    this.#path = path;
    this.#cancel = this.#start();
  }

  get signal(): AbortSignal {
    return this.#silence.signal;
  }

  /** Call it for each event. */
  restart(): void {
    this.#cancel();
    this.#cancel = this.#start();
  }

  end(): void {
    this.#cancel();
  }

  #start(): () => void {
    return this.#clock.after(SILENCE_MS, () =>
      this.#silence.abort(new Error(`the watch of ${this.#path} was silent for ${SILENCE_MS / 1000} s`)),
    );
  }
}
