import type { Clock } from "../../runtime/clock.ts";
import { keyOf, type Store } from "../../runtime/store.ts";
import { WallTime } from "../../runtime/wall-time.ts";
import { pipeKeyOf } from "./caches.ts";
import type { PipeView } from "./pipe-view.ts";
import type { PodView } from "./pod-view.ts";

/**
 * When a terminating pod of each pipe last ended. Until the scheduler has tried again after that, an unschedulable pod
 * may still get the room. It has at most one entry for each Deployment in the cache.
 */
export class EndedPods {
  readonly #wallTime: WallTime;
  /** Keyed by Deployment, in the time of the monotonic clock. */
  readonly #endedAtMs = new Map<string, number>();

  constructor(
    { pods, pipes }: { readonly pods: Store<PodView>; readonly pipes: Store<PipeView> },
    clock: Pick<Clock, "now" | "monotonic">,
  ) {
    this.#wallTime = new WallTime(clock);
    pods.onChange((change) => {
      if (change.type !== "deleted") return;
      for (const key of pipeKeyOf(change.previous, change.previous.pipeName)) {
        if (pipes.get(key)) this.#endedAtMs.set(key, clock.monotonic());
      }
    });
    pipes.onChange((change) => {
      if (change.type === "deleted") this.#endedAtMs.delete(keyOf(change.previous));
    });
  }

  /** In milliseconds since 1970; 0 for never. */
  lastEndedAtMs(pipe: PipeView): number {
    const endedAtMs = this.#endedAtMs.get(keyOf(pipe));
    return endedAtMs === undefined ? 0 : this.#wallTime.of(endedAtMs);
  }
}
