import { Nodes } from "../capacity/nodes.ts";
import { Rooms } from "../capacity/rooms.ts";
import { TokenBucket } from "../runtime/token-bucket.ts";
import type { WorkQueue } from "../runtime/work-queue.ts";
import { runWorkers, type WorkersOptions } from "../runtime/workers.ts";
import type { ActionRunnerOptions } from "./apply/action-runner.ts";
import { createLimits, type Limits } from "./apply/limits.ts";
import { WriteMemory } from "./apply/write-memory.ts";
import { enqueueOnChange } from "./event-handlers.ts";
import { BY_COMMIT } from "./observe/caches.ts";
import { DeletedScalings, DepartedPipes, EndedPods } from "./observe/deleted-objects.ts";
import { type SearchOptions, searchDeparted } from "./observe/departed-search.ts";
import { Reconciler, type ReconcilerOptions } from "./reconciler.ts";

/** Options of the reconciler that `createReconciler` creates itself, apart from the limits. */
type Made = "writes" | "departed" | "deletedScalings" | "endedPods" | "nodes" | "rooms";

export interface ReconcilerSetup
  extends Omit<ReconcilerOptions, Made | keyof Limits>,
    Pick<WorkersOptions, "concurrency" | "onFailure" | "onReconciled">,
    Pick<SearchOptions, "pipeNamespaces" | "onProblem"> {
  readonly queue: WorkQueue;
  /** False once this process may no longer write. */
  readonly isLeader: () => boolean;
  /** Calls back when the clock was set forward. */
  readonly onSetForward: (listener: () => void) => void;
}

/** Connects the reconciler with its memory and its limits, and enqueues the services whose objects change. */
export function createReconciler(setup: ReconcilerSetup) {
  const { clock, caches, queue, timeouts } = setup;
  const { pipes, pods, scalings } = caches;
  const writes = new WriteMemory([pipes, pods, scalings], clock);
  pods.onChange((change) => {
    if (change.type !== "deleted") writes.seePod(change.object);
  });
  pipes.onChange((change) => {
    // Nothing is written to it any more, so no read would show the outcome of a write without a response.
    if (change.type !== "deleted" && change.object.isBeingDeleted)
      writes.forgetAll(change.object.metadata.uid);
  });
  const departed = new DepartedPipes(pipes);
  const deletedScalings = new DeletedScalings(scalings, clock, timeouts.recreateMs);
  const limits = createLimits({ ...setup, writes });
  enqueueOnChange(caches, queue, limits);
  setup.onSetForward(hastenAtMostEachMinute(setup));
  const reconciler = new Reconciler({
    ...setup,
    ...limits,
    writes,
    departed,
    deletedScalings,
    endedPods: new EndedPods(caches, clock),
    nodes: new Nodes({ ...setup, maxAgeMs: timeouts.nodesMs }),
    rooms: new Rooms(setup),
  });
  const reconcileAll = (signal: AbortSignal) =>
    runWorkers({ ...setup, reconcile: (serviceId) => reconciler.reconcile(serviceId) }, signal);
  const search = searchDeparted(setup, (pipe) => {
    departed.observe(pipe);
    queue.add(pipe.serviceId);
  });
  pipes.onChange((change) => {
    // No watch has shown the last version of the workload, and the controller may have paused that version.
    if (change.type === "deleted" && change.isMissed) search.request();
  });
  /** Reconciles services until the signal is aborted, then finishes the commits in progress. */
  const work = async (signal: AbortSignal) => {
    reconciler.begin();
    deletedScalings.begin();
    await Promise.all([reconcileAll(signal), search.run(signal)]);
    reconciler.end();
    await finishCommits({ ...setup, departed, writes, reconcileAll });
    // The next leader must not start while writes of this one may still be in flight.
    await reconciler.settled();
  };
  return { work };
}

/** Two API servers whose clocks differ may set the clock forward again and again. */
const HASTEN = { requests: 1, windowMs: 60_000 };

/** Returns a function to call when the timers of services are late. It may be called at any rate. */
function hastenAtMostEachMinute({ clock, queue }: Pick<ReconcilerSetup, "clock" | "queue">): () => void {
  const turns = new TokenBucket(HASTEN);
  let isPlanned = false;
  return () => {
    if (isPlanned) return;
    isPlanned = true;
    clock.after(turns.reserve(clock.monotonic()), () => {
      isPlanned = false;
      queue.hasten();
    });
  };
}

/** Commits in progress may take this part of the 60 s that the chart gives the process to end. */
const MOST_MS = 20_000;

const CHECK_MS = 100;

interface Parts extends Pick<ActionRunnerOptions, "caches" | "departed" | "writes" | "queue" | "clock"> {
  readonly reconcileAll: (signal: AbortSignal) => Promise<void>;
  /** False once this process may no longer write. */
  readonly isLeader: () => boolean;
}

/**
 * Ends the commits that have begun, before the process ends: there may be no next controller, and then Deployments
 * would stay paused and pods held. A commit takes about 100 ms.
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
