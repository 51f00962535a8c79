import type { Clock } from "../../runtime/clock.ts";
import { Pace } from "../../runtime/pace.ts";
import { WaitingLine, type WaitingLineOptions } from "./waiting-line.ts";

/**
 * The Deployment controller makes 5 writes for each commit, and by default no more than 20 writes per second for all
 * Deployments of the cluster (docs/explanation/kubernetes-behavior.md). So no more than three start in any second.
 */
const INTERVAL_MS = 334;

/** Number of resizes that may begin at once. Their commits wait for two seconds at most. */
export const BEGIN_BURST = 6;

export interface InPlacePaceOptions extends Pick<WaitingLineOptions, "wake"> {
  readonly clock: Pick<Clock, "monotonic" | "after">;
  /** Number of turns that can be taken at once; by default 1. */
  readonly burst?: number;
}

/**
 * The rate of resizes in place across all services, and the services that wait for their turn. There is one for the
 * commits, and one for the resizes: if more began than can be committed, their pods would be watched, and would have
 * another size than the template, for longer than necessary.
 */
export class InPlacePace extends WaitingLine {
  readonly #pace: Pace;
  readonly #clock: InPlacePaceOptions["clock"];

  constructor({ wake, clock, burst = 1 }: InPlacePaceOptions) {
    const pace = new Pace(1000 / INTERVAL_MS, burst);
    super({
      free: () => pace.free(clock.monotonic()),
      // A service that was woken may not have taken its turn yet.
      recheckMs: () => pace.wait(clock.monotonic()) || INTERVAL_MS,
      wake,
      clock,
    });
    this.#pace = pace;
    this.#clock = clock;
  }

  /**
   * Resizes of a predecessor continue immediately, so there may be no turn left to take.
   *
   * @returns false if there is none
   */
  take(): boolean {
    if (this.free() === 0) return false;
    this.#pace.delay(this.#clock.monotonic());
    return true;
  }

  /** Call it when a resize that took a turn ends without a commit. */
  giveBack(): void {
    this.#pace.giveBack();
    this.wakeNext();
  }
}
