import type { Clock } from "../../runtime/clock.ts";

export interface RolloutBudgetOptions {
  /** Maximum number of concurrent rollouts across all services. */
  readonly limit: number;
  /** Rollouts in the cache, and rollouts that may have started but are not in the cache yet. */
  readonly rolling: () => number;
  /** Reconciles a service that waits for a rollout. */
  readonly wake: (serviceId: string) => void;
  readonly clock: Pick<Clock, "after">;
}

/** Rollouts can also leave the budget by timeout, which produces no event. */
const RECHECK_MS = 30_000;

/**
 * The limit of concurrent rollouts across all services, and the services that wait for it, first come, first served. It
 * wakes only as many services as rollouts may start, so that the work grows with the number of rollouts and not with
 * the number of waiting services.
 */
export class RolloutBudget {
  readonly #options: RolloutBudgetOptions;
  readonly #waiting = new Set<string>();
  /** Services that were woken and not reconciled since. */
  readonly #woken = new Set<string>();
  #hasTimer = false;

  constructor(options: RolloutBudgetOptions) {
    this.#options = options;
  }

  /** Number of rollouts that may start now. */
  free(): number {
    return Math.max(0, this.#options.limit - this.#options.rolling());
  }

  /** Call it after each reconciliation. @param isWaiting whether a pipe of the service waits for the budget */
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

  /** Wakes services after a rollout ended, or after a woken service did not start one. */
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
      // After a failed reconciliation, it is unknown whether the service started a rollout.
      this.#woken.clear();
      this.wakeNext();
      if (this.#waiting.size > 0) this.#startTimer();
    });
  }
}
