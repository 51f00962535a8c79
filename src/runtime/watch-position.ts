import type { Clock } from "./clock.ts";
import { compareResourceVersions } from "./resource-version.ts";

/**
 * The resource version that a store has reached, and the last time at which the store was known to be current.
 *
 *     moveToList ──▶ advance, advance, … ──▶ doubt ──▶ check ──▶ advance, … (the backlog first)
 *         ▲                                    │          │
 *         └───────────── discard ◀─────────────┴──────────┘
 */
export class WatchPosition {
  readonly #clock: Pick<Clock, "monotonic">;
  #lastSyncResourceVersion: string | undefined;
  #isDoubtful = false;
  /** The server's version at the last check. Older events are backlog and do not show that the store is current. */
  #backlogEnd = "";
  #lastContact = Number.NEGATIVE_INFINITY;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#clock = clock;
  }

  /** The next watch starts after this version. Undefined if a list is needed. */
  get lastSyncResourceVersion(): string | undefined {
    return this.#lastSyncResourceVersion;
  }

  /** Monotonic time at which the store was last known to be current. It never decreases. */
  get lastContact(): number {
    return this.#lastContact;
  }

  /** Before the first list, and after `discard`. */
  get needsList(): boolean {
    return this.#lastSyncResourceVersion === undefined;
  }

  get needsCheck(): boolean {
    return this.#isDoubtful && !this.needsList;
  }

  /** The store now equals a list, which can be older than the position before it. */
  moveToList(resourceVersion: string, requestedAt: number): void {
    this.#lastSyncResourceVersion = resourceVersion;
    this.#isDoubtful = false;
    this.#backlogEnd = "";
    this.#lastContact = requestedAt;
  }

  /** The watch reached this version, by a change or a bookmark. */
  advance(resourceVersion: string): void {
    this.#lastSyncResourceVersion = resourceVersion;
    if (compareResourceVersions(resourceVersion, this.#backlogEnd) < 0) return;
    this.#lastContact = this.#clock.monotonic();
  }

  /** The next watch must not start before `check`. */
  doubt(): void {
    this.#isDoubtful = true;
  }

  /** Discards a position that is newer than the server's version: etcd was restored from a snapshot. */
  check(serverVersion: string): void {
    this.#isDoubtful = false;
    this.#backlogEnd = serverVersion;
    const position = this.#lastSyncResourceVersion;
    if (position !== undefined && compareResourceVersions(serverVersion, position) < 0) this.discard();
  }

  /** After this, a list is needed. */
  discard(): void {
    this.#lastSyncResourceVersion = undefined;
  }
}
