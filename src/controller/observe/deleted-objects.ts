import { shared } from "../../kube/memoized.ts";
import type { Clock } from "../../runtime/clock.ts";
import { compareResourceVersions } from "../../runtime/resource-version.ts";
import { keyOf, type Store } from "../../runtime/store.ts";
import { WallTime } from "../../runtime/wall-time.ts";
import type { PipeStore } from "./caches.ts";
import type { PipeScalingView } from "./pipe-scaling-view.ts";
import { isUnreleased, lastServiceOf, type PipeView } from "./pipe-view.ts";
import { type ContainerView, isReplica, type PodView } from "./pod-view.ts";
import { keyOfPipe, pipeKeysOf } from "./workloads/kinds.ts";

/** Far more than the PipeScalings that are deleted, or the pipes that lose their labels during a commit, in 30 s. */
const MAX_ENTRIES = 1000;

/**
 * When recently deleted PipeScalings may be created again. Their owner may be replacing them, as
 * `kubectl replace --force` does. The requested sizes are not kept: the pipes show their size.
 */
export class DeletedScalings {
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #wallTime: WallTime;
  readonly #graceMs: number;
  /** In the time of the monotonic clock. */
  readonly #recreateAtMs = new Map<string, number>();
  #unseenUntilMs = 0;

  constructor(scalings: Store<PipeScalingView>, clock: Pick<Clock, "now" | "monotonic">, graceMs: number) {
    this.#clock = clock;
    this.#wallTime = new WallTime(clock);
    this.#graceMs = graceMs;
    scalings.onChange((change) => {
      if (change.type === "deleted") this.#remember(keyOf(change.previous));
      else if (change.type === "added") this.#recreateAtMs.delete(keyOf(change.object));
    });
  }

  /** Begins the grace time of the PipeScalings whose deletion this process did not see. Call it when work begins. */
  begin(): void {
    this.#unseenUntilMs = this.#clock.monotonic() + this.#graceMs;
  }

  /** In milliseconds since 1970. `isSeen`: this process saw the deletion. */
  recreation(namespace: string, name: string): { readonly atMs: number; readonly isSeen: boolean } {
    const atMs = this.#recreateAtMs.get(`${namespace}/${name}`);
    return { atMs: this.#wallTime.of(atMs ?? this.#unseenUntilMs), isSeen: atMs !== undefined };
  }

  #remember(key: string): void {
    const [oldest] = this.#recreateAtMs.keys();
    if (oldest !== undefined && this.#recreateAtMs.size >= MAX_ENTRIES) this.#recreateAtMs.delete(oldest);
    this.#recreateAtMs.set(key, this.#clock.monotonic() + this.#graceMs);
  }
}

/**
 * Workloads that left the cache, because somebody removed a label or deleted them, while the controller still had to
 * release them after a commit. They are read until they are released or gone. departed-search.ts finds those that this
 * process did not see leave.
 */
export class DepartedPipes {
  readonly #pipes: Pick<PipeStore, "get">;
  /** Keyed by UID. */
  readonly #departed = new Map<string, PipeView>();

  constructor(pipes: Pick<PipeStore, "get" | "onChange">) {
    this.#pipes = pipes;
    pipes.onChange((change) => {
      if (change.type === "deleted") this.observe(change.previous);
      else if (!this.#isOlder(change.object)) this.forget(change.object.metadata.uid);
    });
  }

  /** Call it with the response to a read or a write. The workload may have left the cache meanwhile. */
  observe(pipe: PipeView): void {
    const { uid } = pipe.metadata;
    if (this.#pipes.get(keyOfPipe(pipe))?.metadata.uid === uid || this.#isOlder(pipe)) return;
    const serviceId = this.#departed.get(uid)?.serviceId ?? lastServiceOf(pipe);
    if (!isUnreleased(pipe) || pipe.isBeingDeleted) this.forget(uid);
    else if (this.#departed.has(uid) || this.#departed.size < MAX_ENTRIES)
      this.#departed.set(uid, { ...pipe, serviceId });
  }

  /** True for a version from before the labels were removed, as in a late event of the watch. */
  #isOlder({ metadata: { uid, resourceVersion } }: PipeView): boolean {
    const known = this.#departed.get(uid)?.metadata.resourceVersion;
    return known !== undefined && compareResourceVersions(resourceVersion, known) < 0;
  }

  forget(uid: string): void {
    this.#departed.delete(uid);
  }

  has(uid: string): boolean {
    return this.#departed.has(uid);
  }

  all(): readonly PipeView[] {
    return [...this.#departed.values()];
  }

  /** Those that belonged to a service. */
  of(serviceId: string): readonly PipeView[] {
    return [...this.#departed.values()].filter((pipe) => pipe.serviceId === serviceId);
  }
}

/** The last pod of a pipe that was seen to end. */
export interface EndedPod {
  /** When it ended, in milliseconds since 1970. */
  readonly atMs: number;
  readonly containers: readonly Pick<ContainerView, "name" | "resources">[];
}

/**
 * The last pod of each pipe that was seen to end or to lose its label. An unschedulable pod may get the room of an
 * ended pod when the scheduler tries again, and the status of the workload may still count the ended pod. There is at
 * most one entry for each pipe in the cache.
 */
export class EndedPods {
  readonly #wallTime: WallTime;
  /** Keyed by pipe, in the time of the monotonic clock. */
  readonly #ended = new Map<string, EndedPod>();

  constructor(
    { pods, pipes }: { readonly pods: Store<PodView>; readonly pipes: Pick<PipeStore, "get" | "onChange"> },
    clock: Pick<Clock, "now" | "monotonic">,
  ) {
    this.#wallTime = new WallTime(clock);
    pods.onChange((change) => {
      if (change.type === "added") return;
      const { previous } = change;
      if (!isReplica(previous) || (change.type === "updated" && isReplica(change.object))) return;
      const containers = shared(previous.containers.map(({ name, resources }) => ({ name, resources })));
      for (const key of pipeKeysOf(previous, previous.pipeName)) {
        if (pipes.get(key)) this.#ended.set(key, { atMs: clock.monotonic(), containers });
      }
    });
    pipes.onChange((change) => {
      if (change.type === "deleted") this.#ended.delete(keyOfPipe(change.previous));
    });
  }

  last(pipe: PipeView): EndedPod | undefined {
    const ended = this.#ended.get(keyOfPipe(pipe));
    return ended && { ...ended, atMs: this.#wallTime.of(ended.atMs) };
  }
}
