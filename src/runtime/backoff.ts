/** Delays that double from `firstMs` to `mostMs`, each shortened at random by up to half to spread the retries. */
export class Backoff {
  readonly #firstMs: number;
  readonly #mostMs: number;
  readonly #random: () => number;
  #failures = 0;

  constructor(firstMs: number, mostMs: number, random: () => number = Math.random) {
    this.#firstMs = firstMs;
    this.#mostMs = mostMs;
    this.#random = random;
  }

  next(): number {
    const full = Math.min(this.#mostMs, this.#firstMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    return full * (1 - this.#random() / 2);
  }

  reset(): void {
    this.#failures = 0;
  }
}
