import { abortable } from "./abortable.ts";

/** Limits the number of concurrent users; the others wait in the order of their arrival. */
export class Semaphore {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(size: number) {
    this.#free = size;
  }

  /** @returns a function to call once, at the end. @throws the signal's reason if it is aborted before */
  async acquire(signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    return () => this.#release();
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    try {
      await abortable(promise, signal);
    } catch (reason) {
      // The caller may have acquired the semaphore at the same moment.
      if (!this.#waiting.delete(resolve)) this.#release();
      throw reason;
    }
  }

  #release(): void {
    const [next] = this.#waiting;
    if (!next) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
