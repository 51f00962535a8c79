import type { Clock } from "../../runtime/clock.ts";
import type { Store } from "../../runtime/store.ts";
import { WallTime } from "../../runtime/wall-time.ts";
import { keyOfPipe, pipeKeysOf } from "./pipe-kind.ts";
import type { PipeStore } from "./pipe-store.ts";
import type { PipeView } from "./pipe-view.ts";
import type { PodView } from "./pod-view.ts";

/**
 * When a terminating pod of each pipe last ended. Until the scheduler has tried again after that, an unschedulable pod
 * may still get the room. It has at most one entry for each pipe in the cache.
 */
export class EndedPods {
  readonly #wallTime: WallTime;
  /** Keyed by pipe, in the time of the monotonic clock. */
  readonly #endedAtMs = new Map<string, number>();

  constructor(
    { pods, pipes }: { readonly pods: Store<PodView>; readonly pipes: Pick<PipeStore, "get" | "onChange"> },
    clock: Pick<Clock, "now" | "monotonic">,
  ) {
    this.#wallTime = new WallTime(clock);
    pods.onChange((change) => {
      if (change.type !== "deleted") return;
      for (const key of pipeKeysOf(change.previous, change.previous.pipeName)) {
        if (pipes.get(key)) this.#endedAtMs.set(key, clock.monotonic());
      }
    });
    pipes.onChange((change) => {
      if (change.type === "deleted") this.#endedAtMs.delete(keyOfPipe(change.previous));
    });
  }

  /** In milliseconds since 1970; 0 for never. */
  lastEndedAtMs(pipe: PipeView): number {
    const endedAtMs = this.#endedAtMs.get(keyOfPipe(pipe));
    return endedAtMs === undefined ? 0 : this.#wallTime.of(endedAtMs);
  }
}
