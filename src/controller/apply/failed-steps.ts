import type { Clock } from "../../runtime/clock.ts";
import { keyOf, type Store } from "../../runtime/store.ts";
import { failsTooLong } from "../decide/failed-step.ts";
import { currentFailure, type FailedStep, type RepeatedStep } from "../in-place/failed-step.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { Timeouts } from "../timeouts.ts";
import { writeErrorOf } from "./write-error.ts";

/**
 * The failed writes of resizes in place, which are repeated. It has at most as many entries as the cache has
 * Deployments.
 */
export class FailedSteps {
  /** With times of the monotonic clock. */
  readonly #records = new Map<string, FailedStep>();
  /** UIDs of Deployments with such a write in flight. */
  readonly #inFlight = new Set<string>();
  readonly #pipes: Store<DeploymentView>;
  readonly #clock: Pick<Clock, "now" | "monotonic">;
  readonly #timeouts: Timeouts;

  constructor(pipes: Store<DeploymentView>, clock: Pick<Clock, "now" | "monotonic">, timeouts: Timeouts) {
    this.#pipes = pipes;
    this.#clock = clock;
    this.#timeouts = timeouts;
    pipes.onChange((change) => {
      if (change.type === "deleted") this.#records.delete(change.previous.metadata.uid);
      else this.#observe(change.object);
    });
  }

  /** The owner may have resumed the Deployment, or a write without a response did. */
  #observe({ metadata: { uid }, isPausedByUs }: DeploymentView): void {
    if (!isPausedByUs && this.#records.get(uid)?.type === "resume") this.#records.delete(uid);
  }

  /** Keyed by uid of the Deployment. */
  get records(): ReadonlyMap<string, FailedStep> {
    // Usually there are none.
    if (this.#records.size === 0) return this.#records;
    const offsetMs = this.#clock.now() - this.#clock.monotonic();
    const atWallTime = ([uid, failed]: [string, FailedStep]): [string, FailedStep] => [
      uid,
      { ...failed, firstAtMs: failed.firstAtMs + offsetMs, lastAtMs: failed.lastAtMs + offsetMs },
    ];
    return new Map([...this.#records].map(atWallTime));
  }

  /** Returns true if a write has failed for so long that other pipes do not wait for it. */
  failsTooLong(uid: string): boolean {
    const failed = this.#records.get(uid);
    const nowMs = this.#clock.monotonic();
    const current = currentFailure(failed, failed?.type, nowMs);
    return current !== undefined && failsTooLong(current, { nowMs, timeouts: this.#timeouts });
  }

  /** Call it when another resize of the pipe begins. */
  forget(uid: string): void {
    this.#records.delete(uid);
  }

  get inFlight(): ReadonlySet<string> {
    return this.#inFlight;
  }

  /**
   * Makes a write, and records a failure.
   *
   * @throws the error
   */
  async attempt(pipe: DeploymentView, type: RepeatedStep, write: () => Promise<void>): Promise<void> {
    const { uid } = pipe.metadata;
    const before = this.#records.get(uid);
    this.#inFlight.add(uid);
    try {
      await write();
    } catch (cause) {
      this.#failed(pipe, type, cause);
      throw cause;
    } finally {
      this.#inFlight.delete(uid);
    }
    if (this.#records.get(uid) === before) this.#records.delete(uid);
  }

  /** An outdated view is not a failure of the write. */
  #failed(pipe: DeploymentView, type: RepeatedStep, cause: unknown): void {
    const { uid } = pipe.metadata;
    const error = writeErrorOf(cause);
    // The Deployment may have been deleted meanwhile.
    if (!error || this.#pipes.get(keyOf(pipe))?.metadata.uid !== uid) return;
    const nowMs = this.#clock.monotonic();
    const before = currentFailure(this.#records.get(uid), type, nowMs);
    const { attempts = 0, firstAtMs = nowMs } = before ?? {};
    this.#records.set(uid, { type, error, attempts: attempts + 1, firstAtMs, lastAtMs: nowMs });
  }
}
