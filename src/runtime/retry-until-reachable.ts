import { isTransient } from "../kube/reachable.ts";
import { type Clock, pause } from "./clock.ts";
import { RetryBackoff, type RetryDelays } from "./retry-backoff.ts";

/** A process that starts during an outage waits at most 10 s between two calls. */
const DELAYS: RetryDelays = { firstMs: 1000, mostMs: 10_000 };

/**
 * Repeats a call while the API server is unreachable or busy, so that a process that starts during an outage does not
 * exit: the kubelet would delay its restarts by up to five minutes.
 *
 * @param onProblem called with each error after which the call is repeated
 * @throws the error of the call if no later call can succeed, or the reason of the signal
 */
export async function retryUntilReachable<T>(
  call: () => Promise<T>,
  { clock, onProblem }: { readonly clock: Clock; readonly onProblem: (problem: unknown) => void },
  signal: AbortSignal,
): Promise<T> {
  const backoff = new RetryBackoff(clock, DELAYS);
  for (;;) {
    try {
      return await call();
    } catch (error) {
      signal.throwIfAborted();
      if (!isTransient(error)) throw error;
      onProblem(error);
    }
    await pause(clock, backoff.next(), signal);
    signal.throwIfAborted();
  }
}
