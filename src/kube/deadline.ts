/**
 * A signal that is aborted after a time, or with another signal. Its timer and its listener are gone after `end`.
 *
 * `AbortSignal.timeout` with `AbortSignal.any` would do the same, but leave both to the garbage collector, which would
 * be a large part of the cost of a call.
 */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #outer: AbortSignal | undefined;

  constructor(ms: number, outer: AbortSignal | undefined) {
    this.#outer = outer;
    this.#timer = setTimeout(this.#expire, ms).unref();
    if (outer?.aborted) this.#follow();
    else outer?.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener("abort", this.#follow);
  }

  readonly #expire = (): void => {
    this.#controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  };

  readonly #follow = (): void => {
    this.#controller.abort(this.#outer?.reason);
  };
}
