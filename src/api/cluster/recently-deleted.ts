import type { KubeObject } from "../../kube/objects.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type Change, keyOf } from "../../runtime/store.ts";

/** The controller creates a PipeScaling again after 30 s, or later if no controller runs; without pipes, never. */
const REMEMBERED_MS = 3_600_000;
/** Far more than the services of a cluster. */
const MAX_ENTRIES = 65_536;

/** The objects whose deletion this process has seen in the last hour. */
export class RecentlyDeleted {
  readonly #clock: Pick<Clock, "monotonic">;
  /** In the order of the deletions, the oldest first. */
  readonly #deletedAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  observe(change: Change<KubeObject>): void {
    if (change.type !== "deleted") return;
    const key = keyOf(change.previous);
    this.#deletedAtMs.delete(key);
    this.#deletedAtMs.set(key, this.#clock.monotonic());
    const [oldest] = this.#deletedAtMs.keys();
    if (oldest !== undefined && this.#deletedAtMs.size > MAX_ENTRIES) this.#deletedAtMs.delete(oldest);
  }

  has(namespace: string, name: string): boolean {
    const atMs = this.#deletedAtMs.get(`${namespace}/${name}`);
    return atMs !== undefined && this.#clock.monotonic() - atMs < REMEMBERED_MS;
  }
}
