import type { Clock } from "../../runtime/clock.ts";

export interface WaitingLineOptions {
  /** Number of services that may proceed now. */
  readonly free: () => number;
  /** Time until a service may proceed without an event; read while one waits. */
  readonly recheckMs: () => number;
  /** Reconciles a service that waits. */
  readonly wake: (serviceId: string) => void;
  readonly clock: Pick<Clock, "after">;
}

/**
 * The services that wait for a limit across all services, first come, first served. It wakes only as many services as
 * may proceed, so that the work does not grow with the number of waiting services.
 */
export class WaitingLine {
  readonly #options: WaitingLineOptions;
  readonly #waiting = new Set<string>();
  /** Services that were woken and not reconciled since. */
  readonly #woken = new Set<string>();
  #hasTimer = false;

  constructor(options: WaitingLineOptions) {
    this.#options = options;
  }

  free(): number {
    return this.#options.free();
  }

  /** Number of turns that a service may take: all but those of other services that were woken for them. */
  freeFor(serviceId: string): number {
    const reserved = this.#woken.size - (this.#woken.has(serviceId) ? 1 : 0);
    return Math.max(0, this.free() - reserved);
  }

  /** Call it after each reconciliation. @param isWaiting whether a pipe of the service waits for this limit */
  reconciled(serviceId: string, isWaiting: boolean): void {
    this.#woken.delete(serviceId);
    if (isWaiting) {
      this.#waiting.add(serviceId);
      this.#startTimer();
    } else {
      this.#waiting.delete(serviceId);
      // A write that failed, or whose outcome was unknown until now, leaves the limit without an event.
      this.wakeNext();
    }
  }

  /** Wakes services after the limit allows another one, or after a woken service did not need it. */
  wakeNext(): void {
    if (this.#waiting.size === 0) return;
    let count = this.free() - this.#woken.size;
    for (const serviceId of this.#waiting) {
      if (count <= 0) return;
      count -= 1;
      this.#waiting.delete(serviceId);
      this.#woken.add(serviceId);
      this.#options.wake(serviceId);
    }
  }

  #startTimer(): void {
    if (this.#hasTimer) return;
    this.#hasTimer = true;
    this.#options.clock.after(this.#options.recheckMs(), () => {
      this.#hasTimer = false;
      // After a failed reconciliation, it is unknown whether the service began a rollout.
      this.#woken.clear();
      this.wakeNext();
      if (this.#waiting.size > 0) this.#startTimer();
    });
  }
}
