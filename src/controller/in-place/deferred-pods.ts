import type { Clock } from "../../runtime/clock.ts";
import type { Change } from "../../runtime/store.ts";
import type { PodView } from "./pod-view.ts";

/** Measures how long the resizes of pods wait because their node has no room. */
export class DeferredPods {
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #onEnd: (durationMs: number) => void;
  /** By UID of the pod. */
  readonly #sinceMs = new Map<string, number>();

  /** @param onEnd called when a pod gets the room, or when the resize ends without it */
  constructor(clock: Pick<Clock, "monotonic">, onEnd: (durationMs: number) => void) {
    this.#clock = clock;
    this.#onEnd = onEnd;
  }

  observe(change: Change<PodView>): void {
    const isPresent = change.type !== "deleted";
    const { uid } = isPresent ? change.object.metadata : change.previous.metadata;
    if (!isPresent || !isDeferred(change.object)) this.#end(uid);
    else if (!this.#sinceMs.has(uid)) this.#sinceMs.set(uid, this.#clock.monotonic());
  }

  end(): void {
    for (const uid of [...this.#sinceMs.keys()]) this.#end(uid);
  }

  #end(uid: string): void {
    const sinceMs = this.#sinceMs.get(uid);
    if (sinceMs === undefined) return;
    this.#sinceMs.delete(uid);
    this.#onEnd(this.#clock.monotonic() - sinceMs);
  }
}

function isDeferred({ resize }: PodView): boolean {
  return resize?.type === "PodResizePending" && resize.reason !== "Infeasible";
}
