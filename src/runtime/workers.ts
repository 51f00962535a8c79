import {
  isCode,
  isConflict,
  isDeniedByWebhook,
  isTerminating,
  KubeApiError,
  KubeUnreachableError,
} from "../kube/errors.ts";
import { LeadershipLostError } from "./leader.ts";
import type { WorkQueue } from "./work-queue.ts";

/** Result of a reconcile. Without `requeue` and `requeueAfterMs`, the key waits for the next change. */
export interface Outcome {
  /**
   * Reconcile again soon. It counts toward the backoff, like an error, so that it cannot become a busy loop. With
   * `requeueAfterMs`, the earlier time counts.
   */
  readonly requeue?: boolean;
  readonly requeueAfterMs?: number | undefined;
  /** Writes of this key are still in flight and may fail, so its backoff does not start over. */
  readonly isUnfinished?: boolean;
}

export type ReconcileResult = "success" | "requeue" | "requeue_after" | "error";

export interface WorkersOptions {
  readonly queue: WorkQueue;
  readonly concurrency: number;
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<Outcome>;
  /** Called for every failure before the abort. `expected` ones, such as conflicts, are not bugs. */
  readonly onFailure: (key: string, error: unknown, expected: boolean) => void;
  /** Called at the end of every reconcile, except for one that fails after the abort. */
  readonly onReconciled?: (result: ReconcileResult) => void;
}

/** Reconciles the keys of the queue. Resolves when the signal is aborted and the last reconcile has ended. */
export async function runWorkers(options: WorkersOptions, signal: AbortSignal): Promise<void> {
  const worker = async () => {
    for (;;) {
      const key = await options.queue.next(signal);
      if (key === undefined) return;
      await reconcileKey(options, key, signal);
      options.queue.done(key);
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, worker));
}

async function reconcileKey(options: WorkersOptions, key: string, signal: AbortSignal): Promise<void> {
  const { queue, reconcile, onFailure, onReconciled } = options;
  try {
    const { requeue = false, requeueAfterMs, isUnfinished = false } = await reconcile(key, signal);
    if (requeueAfterMs !== undefined) queue.addAfter(key, requeueAfterMs);
    if (requeue) queue.retry(key);
    else if (!isUnfinished) queue.forget(key);
    const waits = requeueAfterMs === undefined ? "success" : "requeue_after";
    onReconciled?.(requeue ? "requeue" : waits);
  } catch (error) {
    if (signal.aborted) return;
    const { expected, leastMs } = retryPolicy(error);
    onFailure(key, error, expected);
    queue.retry(key, leastMs);
    onReconciled?.("error");
  }
}

/**
 * Every error is retried with a growing delay, and not before the server's Retry-After. An error is expected if the
 * process is no longer the leader, the server is unreachable or busy, the object is gone or has changed, or the
 * namespace or CRD of a new object is being deleted.
 */
function retryPolicy(error: unknown): { readonly expected: boolean; readonly leastMs: number } {
  if (error instanceof LeadershipLostError || error instanceof KubeUnreachableError)
    return { expected: true, leastMs: 0 };
  if (error instanceof KubeApiError) {
    const isBusy = isCode(error, 429) && !isDeniedByWebhook(error);
    const expected = isConflict(error) || isBusy || isTerminating(error);
    return { expected, leastMs: error.retryAfterMs ?? 0 };
  }
  return { expected: false, leastMs: 0 };
}
