import type { EndedCall } from "../kube/client.ts";
import type { Clock } from "./clock.ts";
import { MAX_WATCH_SECONDS } from "./list-watch.ts";

/** The `Date` header has whole seconds, rounded down. */
const HEADER_PRECISION_MS = 1000;
/** Smaller differences are normal between synchronized machines. */
const TOLERANCE_MS = 2000;
const LARGE_CORRECTION_MS = 60_000;
/** Until a large correction counts, all responses must agree on it: one of several API servers may be wrong. */
const DOUBT_MS = 10_000;
/**
 * The time without the agreement of this machine. All responses of minutes can come from one server, because a
 * connection stays with its server. In this time, each watch begins again, so each server of a watch responds.
 */
const DOUBT_ALONE_MS = (MAX_WATCH_SECONDS + 60) * 1000;

/** A large correction that nothing has contradicted yet. */
interface Doubt {
  readonly offsetMs: number;
  /** Monotonic time of the first response that showed it; `offsetMs` is that of the last one. */
  readonly sinceMs: number;
}

/**
 * A clock that follows that of the API server, because decisions compare the time with times in the cluster.
 *
 * It begins with the wall clock of this machine and continues on the monotonic clock, so later jumps of the wall clock
 * have no effect. A response whose `Date` differs by more than 2 s corrects it. If it differs by more than a minute, and
 * is not the first one, the correction counts when all responses of 10 s and the wall clock of this machine show it, as
 * after a suspension, or when all responses of 21 minutes do. But if no response has agreed with this machine yet, the
 * next one that does counts at once: the first one may have come from the only wrong server of several.
 */
export class ServerClock implements Clock {
  readonly #base: Clock;
  readonly #onLargeCorrection: (correctionMs: number) => void;
  readonly #forwardListeners: (() => void)[] = [];
  /** Milliseconds to add to the monotonic time to get the time since 1970. */
  #offsetMs: number;
  #isReported = false;
  #isObserved = false;
  /** A response has agreed with the wall clock of this machine. */
  #isConfirmed = false;
  #doubt: Doubt | undefined;

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
  observe({ code, date, seconds }: Pick<EndedCall, "code" | "date" | "seconds">): void {
    // A proxy that reaches no API server responds with its own time.
    if (date === undefined || code >= 500) return;
    // The server wrote the header between the start of the request and now.
    const receivedAt = this.#base.monotonic();
    const least = date - receivedAt - TOLERANCE_MS;
    const most = date + HEADER_PRECISION_MS - (receivedAt - seconds * 1000) + TOLERANCE_MS;
    const doubt = this.#doubt;
    const offsetMs = (least + most) / 2;
    // The time of a slow call is vague, and this machine may be a few seconds off, so both need to agree only roughly.
    const isNear = (otherMs: number) => Math.abs(otherMs - offsetMs) <= LARGE_CORRECTION_MS;
    const isOfMachine = isNear(this.#base.now() - receivedAt);
    const isCertain = !this.#isObserved || (isOfMachine && !this.#isConfirmed);
    this.#isObserved = true;
    this.#isConfirmed ||= isOfMachine;
    this.#doubt = undefined;
    if (this.#offsetMs >= least && this.#offsetMs <= most) return;
    const sinceMs = doubt && isNear(doubt.offsetMs) ? doubt.sinceMs : receivedAt;
    const leastMs = isOfMachine ? DOUBT_MS : DOUBT_ALONE_MS;
    const isDoubtful = !isNear(this.#offsetMs) && !isCertain && receivedAt - sinceMs < leastMs;
    if (isDoubtful) this.#doubt = { offsetMs, sinceMs };
    else this.#correct(offsetMs - this.#offsetMs);
  }

  #correct(correctionMs: number): void {
    this.#offsetMs += correctionMs;
    if (correctionMs > 0) for (const listener of this.#forwardListeners) listener();
    if (this.#isReported || Math.abs(correctionMs) <= LARGE_CORRECTION_MS) return;
    this.#isReported = true;
    this.#onLargeCorrection(correctionMs);
  }
}
