import type { Clock } from "./clock.ts";
import { compareResourceVersions } from "./resource-version.ts";

/**
 * The API server sends a bookmark every minute. If a watch ends without contact for this long, something on the way to
 * the server may end every watch before its first bookmark, so only a list can show that the store is current.
 */
const UNPROVEN_MS = 90_000;

/**
 * The resource version that a store has reached, and the last time at which the store was known to be current.
 *
 *     moveToList ──▶ advance, advance, … ──▶ requireCheck ──▶ check ──▶ advance, … (the backlog first)
 *         ▲                  │                    │             │
 *         └──── discard ◀────┴────────────────────┴─────────────┘
 */
export class WatchPosition {
  readonly #clock: Pick<Clock, "monotonic">;
  #lastSyncResourceVersion: string | undefined;
  #isCheckRequired = false;
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

  /** True before the first list and after `discard`. */
  get needsList(): boolean {
    return this.#lastSyncResourceVersion === undefined;
  }

  get needsCheck(): boolean {
    return this.#isCheckRequired && !this.needsList;
  }

  /** Records that the store was replaced by a list. The list can be older than the previous position. */
  moveToList(resourceVersion: string, requestedAt: number): void {
    this.#lastSyncResourceVersion = resourceVersion;
    this.#isCheckRequired = false;
    this.#backlogEnd = "";
    this.#lastContact = requestedAt;
  }

  /** The watch reached this version through a change or a bookmark. */
  advance(resourceVersion: string): void {
    this.#lastSyncResourceVersion = resourceVersion;
    if (compareResourceVersions(resourceVersion, this.#backlogEnd) < 0) return;
    this.#lastContact = this.#clock.monotonic();
  }

  /** The watch ended, by an error or not. Discards the position if the last contact is too long ago. */
  endWatch(): void {
    if (this.#clock.monotonic() - this.#lastContact >= UNPROVEN_MS) this.discard();
  }

  /** Requires a `check` before the next watch. */
  requireCheck(): void {
    this.#isCheckRequired = true;
  }

  /** Discards a position that is newer than the server's version: etcd was restored from a snapshot. */
  check(serverVersion: string): void {
    this.#isCheckRequired = false;
    this.#backlogEnd = serverVersion;
    const position = this.#lastSyncResourceVersion;
    if (position !== undefined && compareResourceVersions(serverVersion, position) < 0) this.discard();
  }

  /** Clears the position, so a list is needed next. */
  discard(): void {
    this.#lastSyncResourceVersion = undefined;
  }
}
