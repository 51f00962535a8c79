import type { Clock } from "../../runtime/clock.ts";
import { Pace } from "../../runtime/pace.ts";
import { WaitingLine, type WaitingLineOptions } from "./waiting-line.ts";

/**
 * The Deployment controller makes 5 writes for each commit, and by default no more than 20 writes per second for all
 * Deployments of the cluster (docs/explanation/kubernetes-behavior.md). So no more than three start in any second.
 */
const INTERVAL_MS = 334;

export interface CommitPaceOptions extends Pick<WaitingLineOptions, "wake"> {
  readonly clock: Pick<Clock, "monotonic" | "after">;
}

/** The rate at which templates follow their resized pods, across all services, and the services that wait for it. */
export class CommitPace extends WaitingLine {
  readonly #pace: Pace;
  readonly #clock: CommitPaceOptions["clock"];

  constructor({ wake, clock }: CommitPaceOptions) {
    const pace = new Pace(1000 / INTERVAL_MS, 1);
    const waitMs = () => pace.wait(clock.monotonic());
    super({
      free: () => (waitMs() === 0 ? 1 : 0),
      // A service that was woken may not have taken its turn yet.
      recheckMs: () => waitMs() || INTERVAL_MS,
      wake,
      clock,
    });
    this.#pace = pace;
    this.#clock = clock;
  }

  /** Call it when a commit starts. */
  begin(): void {
    this.#pace.delay(this.#clock.monotonic());
  }
}
