import { isReplaced, isTerminating, KubeApiError, KubeUnreachableError } from "../kube/errors.ts";
import { LeadershipLostError } from "./leader.ts";
import type { WorkQueue } from "./work-queue.ts";

/** What a reconciliation wants next; by default it waits for the next change. */
export interface Outcome {
  /** Reconcile again soon. It counts against the back-off, like an error, so that it can never become a loop. */
  readonly requeue?: boolean;
  readonly requeueAfterMs?: number | undefined;
}

export type PassResult = "success" | "requeue" | "requeue_after" | "error";

export interface WorkersOptions {
  readonly queue: WorkQueue;
  readonly concurrency: number;
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<Outcome>;
  /** Told of every failure; `expected` ones (conflicts, an unreachable server) are no bugs. */
  readonly onFailure: (key: string, error: unknown, expected: boolean) => void;
  /** Told of every pass, as the last of it. */
  readonly onPass?: (result: PassResult) => void;
}

/** Passes keys from the queue to `reconcile` until the signal is aborted and the last pass is over. */
export async function runWorkers(options: WorkersOptions, signal: AbortSignal): Promise<void> {
  const worker = async () => {
    for (;;) {
      const key = await options.queue.next(signal);
      if (key === undefined) return;
      await pass(options, key, signal);
      options.queue.done(key);
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, worker));
}

async function pass(options: WorkersOptions, key: string, signal: AbortSignal): Promise<void> {
  const { queue, reconcile, onFailure, onPass } = options;
  try {
    const { requeue = false, requeueAfterMs } = await reconcile(key, signal);
    if (requeue) {
      queue.retry(key);
      onPass?.("requeue");
      return;
    }
    queue.forget(key);
    if (requeueAfterMs !== undefined) queue.addAfter(key, requeueAfterMs);
    onPass?.(requeueAfterMs === undefined ? "success" : "requeue_after");
  } catch (error) {
    if (signal.aborted) return;
    const { expected, leastMs } = retryPolicy(error);
    onFailure(key, error, expected);
    queue.retry(key, leastMs);
    onPass?.("error");
  }
}

/** Gone, changed since, or too busy: the world has moved on, and the next look will see how. */
const OUTRUN = [404, 409, 429];

/** The one map from error to requeue: all are retried with growing pauses, none before the server allows it. */
function retryPolicy(error: unknown): { readonly expected: boolean; readonly leastMs: number } {
  if (error instanceof LeadershipLostError || error instanceof KubeUnreachableError)
    return { expected: true, leastMs: 0 };
  if (error instanceof KubeApiError) {
    const expected = OUTRUN.includes(error.code) || isReplaced(error) || isTerminating(error);
    return { expected, leastMs: error.retryAfterMs ?? 0 };
  }
  return { expected: false, leastMs: 0 };
}
