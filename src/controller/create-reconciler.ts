import { isDeepStrictEqual } from "node:util";
import { Nodes } from "../capacity/nodes.ts";
import { Rooms } from "../capacity/rooms.ts";
import type { KubeObject } from "../kube/objects.ts";
import { organizationIdOf } from "../records/organization.ts";
import { serviceIdOf } from "../records/service.ts";
import type { Change, Store } from "../runtime/store.ts";
import { TokenBucket } from "../runtime/token-bucket.ts";
import type { Priority, WorkQueue } from "../runtime/work-queue.ts";
import { runWorkers, type WorkersOptions } from "../runtime/workers.ts";
import type { ActionRunnerOptions } from "./apply/action-runner.ts";
import { createLimits, type Limits } from "./apply/limits.ts";
import { WriteMemory } from "./apply/write-memory.ts";
import { BY_COMMIT, BY_ORGANIZATION, type Caches } from "./observe/caches.ts";
import { DeletedScalings, DepartedPipes, EndedPods } from "./observe/deleted-objects.ts";
import { type SearchOptions, searchDeparted } from "./observe/departed-search.ts";
import { isInCommit, mayBeRollingOut } from "./observe/pipe-view.ts";
import { isOfStatefulSet } from "./observe/pod-view.ts";
import { pipeKeysOf } from "./observe/workloads/kinds.ts";
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

/** Enqueues the services that changes affect. The key is the ID of a service for every kind of object. */
export function enqueueOnChange(caches: Caches, queue: WorkQueue, { rollouts, commits }: Limits): void {
  const enqueue = (serviceId: string | undefined, priority?: Priority) => {
    if (serviceId !== undefined) queue.add(serviceId, priority);
  };
  const enqueuePipe = (keys: readonly string[]) => {
    for (const key of keys) enqueue(caches.pipes.get(key)?.serviceId);
  };
  eachObject(caches.services, ({ metadata }) => enqueue(serviceIdOf(metadata.name)));
  eachObject(caches.organizations, ({ metadata }) => {
    // Rescales that have begun, and those that one customer requested, do not wait for those of a whole organization.
    const services = caches.services.by(BY_ORGANIZATION, organizationIdOf(metadata.name) ?? "");
    for (const service of services) enqueue(serviceIdOf(service.metadata.name), "low");
  });
  eachObject(caches.scalings, ({ metadata }) => enqueue(metadata.name));
  // Each write of the writer of the service label changes this time, so a change of the time alone does not count.
  eachObject(
    caches.pipes,
    ({ serviceId }) => enqueue(serviceId),
    (pipe) => ({ ...pipe, labeledAtMs: 0 }),
  );
  // A Deployment also reports that a pod became ready, so a change of readiness alone does not count.
  eachObject(
    caches.pods,
    (pod) => enqueuePipe(pipeKeysOf(pod, pod.pipeName)),
    (pod) => ({ ...pod, isReady: isOfStatefulSet(pod) && pod.isReady, readyChangedAtMs: 0 }),
  );
  for (const store of caches.autoscalers) {
    eachObject(store, (scaler) => enqueuePipe(pipeKeysOf(scaler, scaler.pipeName)));
  }
  caches.pipes.onChange((change) => {
    const previous = change.type === "added" ? undefined : change.previous;
    const object = change.type === "deleted" ? undefined : change.object;
    if (previous && mayBeRollingOut(previous) && !(object && mayBeRollingOut(object))) rollouts.wakeNext();
    if (previous && isInCommit(previous) && !(object && isInCommit(object))) commits.wakeNext();
    // A read for one service can show, before the watch, that the pipe belongs to another one.
    if (change.isOurs && previous && object && previous.serviceId !== object.serviceId)
      enqueue(object.serviceId);
  });
}

/**
 * Handles both the new and the old object, because a changed label affects two services. Our own writes enqueue
 * nothing, because the reconciliation that made them has seen the responses. A change that no decision can see, such as
 * of the status of an autoscaler, enqueues nothing either.
 */
function eachObject<T extends KubeObject>(
  store: Pick<Store<T>, "onChange">,
  handle: (object: T) => void,
  relevant: (object: T) => T = (object) => object,
): void {
  store.onChange((change: Change<T>) => {
    if (change.isOurs) return;
    if (change.type === "updated" && isSameView(relevant(change.previous), relevant(change.object))) return;
    if (change.type !== "added") handle(change.previous);
    if (change.type !== "deleted") handle(change.object);
  });
}

function isSameView<T extends KubeObject>(
  { metadata: a, ...before }: T,
  { metadata: b, ...after }: T,
): boolean {
  return a.uid === b.uid && a.generation === b.generation && isDeepStrictEqual(before, after);
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
