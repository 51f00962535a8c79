import type { Clock } from "../../runtime/clock.ts";

export interface RolloutBudgetOptions {
  /** Most rollouts at once over all services. */
  readonly limit: number;
  /** Rollouts that the cache shows, or that may have started without it showing them. */
  readonly rolling: () => number;
  /** Reconciles a service that waits for a rollout. */
  readonly wake: (serviceId: string) => void;
  readonly clock: Pick<Clock, "after">;
}

/** Rollouts also leave the budget by time, which no event reports. */
const RECHECK_MS = 30_000;

/**
 * The limit of concurrent rollouts over all services, and the services that wait for it, first come, first served. It
 * wakes as many of them as rollouts may start, so that the work grows with the number of rollouts and not with the
 * number of services that wait.
 */
export class RolloutBudget {
  readonly #options: RolloutBudgetOptions;
  readonly #waiting = new Set<string>();
  /** Woken, and not reconciled since. */
  readonly #woken = new Set<string>();
  #hasTimer = false;

  constructor(options: RolloutBudgetOptions) {
    this.#options = options;
  }

  /** Rollouts that may start now. */
  free(): number {
    return Math.max(0, this.#options.limit - this.#options.rolling());
  }

  /** A reconciliation ended. @param isWaiting whether a pipe of the service waits for the budget */
  reconciled(serviceId: string, isWaiting: boolean): void {
    const wasWoken = this.#woken.delete(serviceId);
    if (isWaiting) {
      this.#waiting.add(serviceId);
      this.#startTimer();
    } else {
      this.#waiting.delete(serviceId);
    }
    if (wasWoken && !isWaiting) this.wakeNext();
  }

  /** A rollout ended, or a service that was woken needed none. */
  wakeNext(): void {
    let places = this.free() - this.#woken.size;
    for (const serviceId of this.#waiting) {
      if (places <= 0) return;
      places -= 1;
      this.#waiting.delete(serviceId);
      this.#woken.add(serviceId);
      this.#options.wake(serviceId);
    }
  }

  #startTimer(): void {
    if (this.#hasTimer) return;
    this.#hasTimer = true;
    this.#options.clock.after(RECHECK_MS, () => {
      this.#hasTimer = false;
      // A reconciliation that failed has not said whether it took its place.
      this.#woken.clear();
      this.wakeNext();
      if (this.#waiting.size > 0) this.#startTimer();
    });
  }
}
