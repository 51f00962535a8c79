import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import type { Clock } from "../../runtime/clock.ts";
import { keyOf, type Store } from "../../runtime/store.ts";
import type { PipeScalingView } from "./pipe-scaling-view.ts";

/** An older deletion no longer indicates the desired spec. */
const MEMORY_MS = 10 * 60_000;

const MAX_ENTRIES = 1000;

export interface DeletedScaling {
  readonly spec: PipeScalingSpec;
  /** The spec may have changed, before or after this deletion, while this process saw no events. */
  readonly isOutdated: boolean;
}

interface Entry extends DeletedScaling {
  readonly recreateAtMs: number;
  /** Interruptions of the watch before the deletion. */
  readonly interruptions: number;
}

/** Recently deleted PipeScalings, with their last spec. */
export class DeletedScalings {
  readonly #scalings: Store<PipeScalingView>;
  readonly #clock: Pick<Clock, "now">;
  readonly #graceMs: number;
  readonly #deleted = new Map<string, Entry>();
  #unseenUntilMs = 0;

  constructor(scalings: Store<PipeScalingView>, clock: Pick<Clock, "now">, graceMs: number) {
    this.#scalings = scalings;
    this.#clock = clock;
    this.#graceMs = graceMs;
    scalings.onChange((change) => {
      if (change.type === "deleted") this.#remember(change.previous, change.isMissed);
      else if (change.type === "added") this.#deleted.delete(keyOf(change.object));
    });
  }

  /** Begins the grace time of the PipeScalings whose deletion this process did not see. Call it when work begins. */
  begin(): void {
    this.#unseenUntilMs = this.#clock.now() + this.#graceMs;
  }

  find(namespace: string, name: string): DeletedScaling | undefined {
    const found = this.#find(namespace, name);
    // The owner may have created it, changed it and deleted it again.
    const isOutdated = found && found.interruptions !== this.#scalings.interruptions;
    return isOutdated ? { ...found, isOutdated } : found;
  }

  /** Returns the time before which a deleted PipeScaling is not created again, in milliseconds since 1970. */
  recreateAtMs(namespace: string, name: string): number {
    return this.#find(namespace, name)?.recreateAtMs ?? this.#unseenUntilMs;
  }

  #find(namespace: string, name: string): Entry | undefined {
    const found = this.#deleted.get(`${namespace}/${name}`);
    const isOld = found && this.#clock.now() - found.recreateAtMs > MEMORY_MS;
    return isOld ? undefined : found;
  }

  #remember(scaling: PipeScalingView, isOutdated: boolean): void {
    const [oldest] = this.#deleted.keys();
    if (oldest !== undefined && this.#deleted.size >= MAX_ENTRIES) this.#deleted.delete(oldest);
    const recreateAtMs = this.#clock.now() + this.#graceMs;
    const { interruptions } = this.#scalings;
    this.#deleted.set(keyOf(scaling), { spec: scaling.spec, isOutdated, recreateAtMs, interruptions });
  }
}
