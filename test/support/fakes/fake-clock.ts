import type { Clock } from "../../../src/runtime/clock.ts";

/** A clock that moves only when a test advances it. */
export class FakeClock implements Clock {
  #now = Date.parse("2026-01-01T00:00:00Z");
  #monotonic = 0;
  #timers: { readonly at: number; readonly callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  after(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#monotonic + delayMs, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((each) => each !== timer);
    };
  }

  /** Advances the time: runs the timers that become due, in order, and everything that waits for them. */
  async advance(ms: number): Promise<void> {
    const end = this.#monotonic + ms;
    for (;;) {
      await settled();
      const next = this.#timers.toSorted((a, b) => a.at - b.at)[0];
      if (!next || next.at > end) break;
      this.#timers = this.#timers.filter((each) => each !== next);
      this.#move(next.at);
      next.callback();
    }
    this.#move(end);
    await settled();
  }

  /** Moves the wall clock, like NTP; the monotonic clock does not jump. */
  jump(ms: number): void {
    this.#now += ms;
  }

  #move(to: number): void {
    this.#now += to - this.#monotonic;
    this.#monotonic = to;
  }
}

/** Runs everything that waits only for promises. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
