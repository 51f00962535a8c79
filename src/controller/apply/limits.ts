import type { Clock } from "../../runtime/clock.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import { WaitingLine } from "../../runtime/waiting-line.ts";
import type { WorkQueue } from "../../runtime/work-queue.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import { BY_COMMIT, type Caches } from "../observe/caches.ts";
import { countRolling, startedAtMs } from "../rollout/phase.ts";
import type { Timeouts } from "../timeouts.ts";
import type { WriteMemory } from "./write-memory.ts";

/**
 * The Deployment controller makes 9 writes for each commit, and by default no more than 20 per second for all
 * Deployments of the cluster. Six commits keep it busy, and its other work waits for less than 3 s.
 */
const MOST_COMMITS = 6;

/** Commits can also leave the limit because a write failed or by timeout, which produces no event. */
const COMMIT_RECHECK_MS = 1000;

/** Rollouts can also leave the limit by timeout, which produces no event. */
const ROLLOUT_RECHECK_MS = 30_000;

export interface LimitsOptions {
  readonly caches: Caches;
  readonly writes: WriteMemory;
  readonly clock: Pick<Clock, "now" | "after">;
  readonly policy: RolloutPolicy;
  readonly timeouts: Timeouts;
  readonly queue: Pick<WorkQueue, "add">;
}

/** The limits across all services: of rollouts, and of templates that follow their pods. */
export interface Limits {
  readonly rollouts: WaitingLine;
  readonly commits: WaitingLine;
}

/** Counts what is in progress from the caches, so that the limits hold across a restart of the controller. */
export function createLimits({ caches, writes, clock, policy, timeouts, queue }: LimitsOptions): Limits {
  const rolling = () => countRolling(caches, { nowMs: clock.now(), policy }) + writes.unresolvedRollouts();
  /** A commit that cannot end does not keep other pipes from theirs. */
  const committing = () => {
    const nowMs = clock.now();
    const unresolved = writes.unresolvedCommits();
    const inCache = caches.pipes.by(BY_COMMIT, "yes").filter((pipe) => {
      // A commit that has ended, but that Kubernetes has not seen, is not paused any more.
      const sinceMs = pipe.pausedForCommitAtMs ?? startedAtMs(pipe, nowMs);
      return elapsedMs(sinceMs, nowMs) < timeouts.stuckCommitMs && !unresolved.has(pipe.metadata.uid);
    });
    return inCache.length + unresolved.size;
  };
  const wake = (serviceId: string) => queue.add(serviceId);
  const line = (limit: number, used: () => number, recheckMs: number) =>
    new WaitingLine({ free: () => Math.max(0, limit - used()), mostTurns: limit, recheckMs, wake, clock });
  return {
    rollouts: line(policy.maxConcurrentRollouts, rolling, ROLLOUT_RECHECK_MS),
    commits: line(MOST_COMMITS, committing, COMMIT_RECHECK_MS),
  };
}
