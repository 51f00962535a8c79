import type { PipeView } from "../../../src/controller/observe/pipe-view.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";

/** The controller measures a timeout from its decision, which it takes a moment before the write. */
const MOST_DECISION_MS = 100;

/** Checks the invariants of the controller in a simulated cluster. */
export class SimulationJudge {
  /** Most concurrent rollouts that the controller started in pipes at rest, in total and in one service. */
  mostRolling = 0;
  mostRollingInService = 0;
  /** Pipes that have run the size that the controller applied. */
  readonly cameUp = new Set<string>();
  /** Those of them that the controller rolled back anyway. */
  readonly wronged: string[] = [];
  /** The longest time that a Deployment was paused and then resumed, by anybody. */
  longestPauseMs = 0;
  /** Pipes that have not come up yet with the applied size. */
  readonly #given = new Set<string>();
  /** For pipes that were at rest: the service, and the timeout of the rollout. */
  readonly #rolling = new Map<string, { readonly serviceId: string; readonly untilMs: number }>();
  readonly #pausedAtMs = new Map<string, number>();
  readonly #clock: FakeClock;
  readonly #rolloutTimeoutMs: number;

  constructor(clock: FakeClock, rolloutTimeoutMs: number) {
    this.#clock = clock;
    this.#rolloutTimeoutMs = rolloutTimeoutMs;
  }

  /** A Deployment was written. */
  written({ metadata: { name }, spec: { paused = false } }: Deployment): void {
    const now = this.#clock.monotonic();
    const { longestPauseMs } = this;
    this.longestPauseMs = Math.max(longestPauseMs, now - (this.#pausedAtMs.get(name) ?? now));
    if (!paused) this.#pausedAtMs.delete(name);
    else if (!this.#pausedAtMs.has(name)) this.#pausedAtMs.set(name, now);
  }

  /** The controller resizes a pipe. */
  given({ metadata: { name }, serviceId, replicas, rollout }: PipeView): void {
    const isBegun = this.#rolling.has(name) || (replicas > 0 && rollout.isComplete);
    this.forget(name);
    this.#given.add(name);
    const now = this.#clock.monotonic();
    if (isBegun) this.#rolling.set(name, { serviceId, untilMs: now + this.#rolloutTimeoutMs });
    const rolling = [...this.#rolling.values()].filter(({ untilMs }) => untilMs > now + MOST_DECISION_MS);
    const ofService = rolling.filter((each) => each.serviceId === serviceId);
    this.mostRolling = Math.max(this.mostRolling, rolling.length);
    this.mostRollingInService = Math.max(this.mostRollingInService, ofService.length);
  }

  /** The controller rolls back a pipe. That never waits, but it counts when the controller starts other rollouts. */
  putBack({ metadata: { name }, serviceId }: PipeView): void {
    if (this.cameUp.has(name)) this.wronged.push(name);
    const isCounted = this.#rolling.has(name);
    this.forget(name);
    const untilMs = this.#clock.monotonic() + this.#rolloutTimeoutMs;
    if (isCounted) this.#rolling.set(name, { serviceId, untilMs });
  }

  completed(name: string): void {
    this.#rolling.delete(name);
    if (this.#given.delete(name)) this.cameUp.add(name);
  }

  /** Call when the owner scales the pipe to zero. */
  stopped(name: string): void {
    this.#rolling.delete(name);
  }

  /** Call when the pipe was deleted, or has another size. */
  forget(name: string): void {
    this.#rolling.delete(name);
    this.#given.delete(name);
    this.cameUp.delete(name);
  }
}
