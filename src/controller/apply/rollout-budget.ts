/**
 * The bound on rollouts over all services. A decision takes its slots before its writes are answered; from
 * then on the cache shows them as rolling. Services that found no slot are remembered until one is free.
 */
export class RolloutBudget {
  readonly #most: number;
  readonly #rolling: () => number;
  readonly #waiting = new Set<string>();
  #reserved = 0;

  /** @param rolling how many pipes the cache shows as rolling */
  constructor(most: number, rolling: () => number) {
    this.#most = most;
    this.#rolling = rolling;
  }

  free(): number {
    return Math.max(0, this.#most - this.#rolling() - this.#reserved);
  }

  /** For rollouts that may have begun, of which nobody knows yet. @returns gives the places back */
  take(count: number): () => void {
    this.#reserved += count;
    return () => {
      this.#reserved -= count;
    };
  }

  async holding<T>(count: number, work: () => Promise<T>): Promise<T> {
    const giveBack = this.take(count);
    try {
      return await work();
    } finally {
      giveBack();
    }
  }

  waitFor(serviceId: string): void {
    this.#waiting.add(serviceId);
  }

  /** The services to look at again, now that a slot may be free. */
  takeWaiting(): string[] {
    const services = [...this.#waiting];
    this.#waiting.clear();
    return services;
  }
}
