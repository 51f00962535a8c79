import type { ActionRunnerOptions } from "./apply/action-runner.ts";
import { BY_COMMIT } from "./observe/caches.ts";

/** A part of the 60 s that the chart gives the process to end. */
const MOST_MS = 20_000;

const CHECK_MS = 100;

interface Parts extends Pick<ActionRunnerOptions, "caches" | "departed" | "writes" | "queue" | "clock"> {
  readonly reconcileAll: (signal: AbortSignal) => Promise<void>;
  /** False once another process may write. */
  readonly isLeader: () => boolean;
}

/**
 * Ends the commits that have begun, before the process ends: there may be no next controller, and then a Deployment
 * would stay paused. A commit takes about 100 ms.
 */
export async function finishCommits(parts: Parts): Promise<void> {
  const { caches, departed, writes, queue, clock, reconcileAll, isLeader } = parts;
  const paused = () => [
    ...caches.pipes.by(BY_COMMIT, "yes").filter(({ isPausedForCommit }) => isPausedForCommit),
    ...departed.all(),
  ];
  const endsAtMs = clock.monotonic() + MOST_MS;
  const ended = new AbortController();
  const check = () => {
    const left = paused();
    const isDone = left.length === 0 && writes.unresolvedCommits().size === 0;
    if (isDone || !isLeader() || clock.monotonic() >= endsAtMs) return ended.abort();
    for (const { serviceId } of left) queue.add(serviceId);
    clock.after(CHECK_MS, check);
  };
  check();
  await reconcileAll(ended.signal);
}
