/**
 * The bound on rollouts over all services. A decision takes its slots before its writes are answered; from
 * then on the cache shows them as rolling. Services that found no slot are remembered until one is free.
 */
export class RolloutSlots {
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

  async holding<T>(count: number, work: () => Promise<T>): Promise<T> {
    this.#reserved += count;
    try {
      return await work();
    } finally {
      this.#reserved -= count;
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
