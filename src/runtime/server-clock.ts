import type { EndedCall } from "../kube/client.ts";
import type { Clock } from "./clock.ts";

/** The `Date` header has whole seconds, rounded down. */
const HEADER_PRECISION_MS = 1000;
/** Smaller differences are normal between synchronized machines. */
const TOLERANCE_MS = 2000;
const LARGE_CORRECTION_MS = 60_000;

/**
 * A clock that follows that of the API server, because decisions compare the time with times in the cluster.
 *
 * It reads the wall clock of this machine only once and continues on the monotonic clock, so later jumps of the wall
 * clock have no effect. A response whose `Date` differs by more than 2 s corrects it.
 */
export class ServerClock implements Clock {
  readonly #base: Clock;
  readonly #onLargeCorrection: (correctionMs: number) => void;
  readonly #forwardListeners: (() => void)[] = [];
  /** Milliseconds to add to the monotonic time to get the time since 1970. */
  #offsetMs: number;
  #isReported = false;

  /** @param onLargeCorrection is called for the first correction of more than a minute */
  constructor(base: Clock, onLargeCorrection: (correctionMs: number) => void = () => undefined) {
    this.#base = base;
    this.#onLargeCorrection = onLargeCorrection;
    this.#offsetMs = base.now() - base.monotonic();
  }

  now(): number {
    return Math.round(this.#base.monotonic() + this.#offsetMs);
  }

  monotonic(): number {
    return this.#base.monotonic();
  }

  after(delayMs: number, callback: () => void): () => void {
    return this.#base.after(delayMs, callback);
  }

  /**
   * Calls back after each correction that sets the clock forward. A timer for a time of day that was started before is
   * late by the correction, because `after` measures with the monotonic clock.
   */
  onSetForward(listener: () => void): void {
    this.#forwardListeners.push(listener);
  }

  /** Call it when the headers of a response arrive. */
  observe({ date, seconds }: Pick<EndedCall, "date" | "seconds">): void {
    if (date === undefined) return;
    // The server wrote the header between the start of the request and now.
    const receivedAt = this.#base.monotonic();
    const least = date - receivedAt;
    const most = date + HEADER_PRECISION_MS - (receivedAt - seconds * 1000);
    if (this.#offsetMs >= least - TOLERANCE_MS && this.#offsetMs <= most + TOLERANCE_MS) return;
    const correctionMs = (least + most) / 2 - this.#offsetMs;
    this.#offsetMs += correctionMs;
    if (correctionMs > 0) for (const listener of this.#forwardListeners) listener();
    if (this.#isReported || Math.abs(correctionMs) <= LARGE_CORRECTION_MS) return;
    this.#isReported = true;
    this.#onLargeCorrection(correctionMs);
  }
}
