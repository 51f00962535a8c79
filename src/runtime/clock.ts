/** Passed as an argument, so that tests can control time. */
export interface Clock {
  /** Wall-clock time in milliseconds since 1970; can jump. For timestamps, never for measuring. */
  now(): number;
  /** Milliseconds that never decrease. For measuring, leases and deadlines. */
  monotonic(): number;
  /** Calls back once after a delay, and returns a function that cancels it. Never keeps the process alive. */
  after(delayMs: number, callback: () => void): () => void;
}

// Longer delays are cut to this, because setTimeout would fire immediately.
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(0, delayMs), LONGEST_TIMEOUT_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after the delay, or as soon as the signal is aborted. Never rejects. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = () => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = clock.after(delayMs, end);
    signal.addEventListener("abort", end);
  });
}

/** Resolves when the work is done, or after the timeout. Rejects if the work fails before that. */
export async function waitAtMost(clock: Clock, timeoutMs: number, work: Promise<unknown>): Promise<void> {
  const timeout = Promise.withResolvers<void>();
  const cancel = clock.after(timeoutMs, timeout.resolve);
  await Promise.race([work, timeout.promise]);
  cancel();
}
