import type { Clock } from "../../runtime/clock.ts";
import { keyOf, type Store } from "../../runtime/store.ts";
import type { PipeScalingView } from "./pipe-scaling-view.ts";

const MAX_ENTRIES = 1000;

/**
 * When recently deleted PipeScalings may be created again. Their owner may be replacing them, as
 * `kubectl replace --force` does. The requested sizes are not kept: the pipes show their size.
 */
export class DeletedScalings {
  readonly #clock: Pick<Clock, "now">;
  readonly #graceMs: number;
  readonly #recreateAtMs = new Map<string, number>();
  #unseenUntilMs = 0;

  constructor(scalings: Store<PipeScalingView>, clock: Pick<Clock, "now">, graceMs: number) {
    this.#clock = clock;
    this.#graceMs = graceMs;
    scalings.onChange((change) => {
      if (change.type === "deleted") this.#remember(keyOf(change.previous));
      else if (change.type === "added") this.#recreateAtMs.delete(keyOf(change.object));
    });
  }

  /** Begins the grace time of the PipeScalings whose deletion this process did not see. Call it when work begins. */
  begin(): void {
    this.#unseenUntilMs = this.#clock.now() + this.#graceMs;
  }

  /** In milliseconds since 1970. `isSeen`: this process saw the deletion. */
  recreation(namespace: string, name: string): { readonly atMs: number; readonly isSeen: boolean } {
    const atMs = this.#recreateAtMs.get(`${namespace}/${name}`);
    return { atMs: atMs ?? this.#unseenUntilMs, isSeen: atMs !== undefined };
  }

  #remember(key: string): void {
    const [oldest] = this.#recreateAtMs.keys();
    if (oldest !== undefined && this.#recreateAtMs.size >= MAX_ENTRIES) this.#recreateAtMs.delete(oldest);
    this.#recreateAtMs.set(key, this.#clock.now() + this.#graceMs);
  }
}
