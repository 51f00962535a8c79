import type { Clock } from "./clock.ts";

export interface WaitingLineOptions {
  /** Number of turns that the limit allows now. */
  readonly free: () => number;
  /** Number of turns after which a key that needs more goes to the end of the line. */
  readonly mostTurns: number;
  /** Interval between checks for turns that became free without an event. */
  readonly recheckMs: number;
  /** Enqueues a key that waits. */
  readonly wake: (key: string) => void;
  readonly clock: Pick<Clock, "after">;
}

interface Place {
  /** The key was woken, and `reconciled` was not called since. */
  isWoken: boolean;
  /** The key was already woken at the last check, and `reconciled` was not called since. */
  isOverdue: boolean;
  /** Turns that the key has taken since it joined the line or was last sent to its end. */
  turns: number;
  /** Turns that its current reconciliation may take. */
  present: number;
}

/**
 * The keys of a work queue that wait for a limit across all keys, first come, first served. A turn is one unit of the
 * limit, such as one rollout. A key keeps its place until it no longer waits or has had `mostTurns`. Only as many keys
 * are woken as there are free turns, so that the work does not grow with the line.
 */
export class WaitingLine {
  readonly #options: WaitingLineOptions;
  /** In the order of their arrival. */
  readonly #line = new Map<string, Place>();
  #woken = 0;
  #hasTimer = false;

  constructor(options: WaitingLineOptions) {
    this.#options = options;
  }

  free(): number {
    return this.#options.free();
  }

  /** Number of turns that a key may take: the free ones, except one for each other key that was woken. */
  freeFor(key: string): number {
    // A turn that has become free without an event belongs to those that came first.
    this.#wakeNext(key);
    const place = this.#line.get(key);
    const reserved = this.#woken - (place?.isWoken ? 1 : 0);
    const free = Math.max(0, this.free() - reserved);
    if (place) place.present = free;
    return free;
  }

  /**
   * Call it after each reconciliation, unless the key keeps its turn for the next one.
   *
   * @param isWaiting whether the key waits for this limit
   */
  reconciled(key: string, isWaiting: boolean): void {
    const place = this.#line.get(key);
    if (place) this.#setWoken(place, false);
    if (isWaiting) {
      if (!place) this.#line.set(key, { isWoken: false, isOverdue: false, turns: 0, present: 0 });
      else this.#countTurns(key, place);
      this.#startTimer();
    } else {
      this.#line.delete(key);
      // A write that failed, or whose outcome was unknown until now, frees a turn without an event.
      this.wakeNext();
    }
  }

  /** Call it when a turn may have become free. Wakes the first keys in the line, one for each free turn. */
  wakeNext(): void {
    this.#wakeNext();
  }

  /** @param present the key that is being reconciled, so it takes its turn without being woken */
  #wakeNext(present?: string): void {
    if (this.#line.size === 0) return;
    let count = this.free() - this.#woken;
    for (const [key, place] of this.#line) {
      if (count <= 0) return;
      if (place.isWoken) continue;
      count -= 1;
      if (key === present) continue;
      this.#setWoken(place, true);
      this.#options.wake(key);
    }
  }

  /** A key that still waits has used all of its turns. Without a maximum, it could take every turn. */
  #countTurns(key: string, place: Place): void {
    place.turns += place.present;
    if (place.turns >= this.#options.mostTurns) this.#sendBack(key, place);
  }

  #sendBack(key: string, place: Place): void {
    this.#setWoken(place, false);
    place.turns = 0;
    this.#line.delete(key);
    this.#line.set(key, place);
  }

  #setWoken(place: Place, isWoken: boolean): void {
    if (place.isWoken !== isWoken) this.#woken += isWoken ? 1 : -1;
    place.isWoken = isWoken;
    place.isOverdue = false;
  }

  #startTimer(): void {
    if (this.#hasTimer) return;
    this.#hasTimer = true;
    this.#options.clock.after(this.#options.recheckMs, () => {
      this.#hasTimer = false;
      // A key whose reconciliation fails must not keep the others waiting.
      for (const [key, place] of [...this.#line]) {
        if (place.isWoken && place.isOverdue) this.#sendBack(key, place);
        else place.isOverdue = place.isWoken;
      }
      this.wakeNext();
      if (this.#line.size > 0) this.#startTimer();
    });
  }
}
