import { isConflict } from "../kube/errors.ts";
import type { Outcome } from "../runtime/workers.ts";
import type { Action } from "./actions.ts";
import { ActionRunner, type ActionRunnerOptions } from "./apply/action-runner.ts";
import type { Limits } from "./apply/limits.ts";
import { decide, recheckAtMs } from "./decide/decide.ts";
import type { Decision } from "./decide/decision.ts";
import type { Snapshot } from "./observe/observe.ts";
import { observe, type Scope, type Sources } from "./observe/observe.ts";
import { Reporter, type ReporterOptions } from "./report/reporter.ts";
import { failuresOfOtherSizes } from "./rollout/prior-failure.ts";
import type { Timeouts } from "./timeouts.ts";

export type ReconcilerOptions = ActionRunnerOptions &
  ReporterOptions &
  Scope &
  Limits &
  Omit<Sources, "leadingSinceMs">;

/**
 * Reconciles one service: observes, decides, and then applies or reports. A reconciliation that writes to pipes is
 * followed by another one, which reports the state after the writes. Two things are reported without waiting for it: a
 * failed write, and that the service is no longer Ready.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #actions: ActionRunner;
  readonly #reporter: Reporter;
  #leadingSinceMs = 0;
  #isEnding = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#actions = new ActionRunner(options);
    this.#reporter = new Reporter(options);
  }

  async reconcile(serviceId: string): Promise<Outcome> {
    const seen = this.#look(serviceId);
    const isClaimed = claimsSize(seen);
    const unreported = isClaimed ? await this.#retract(seen) : undefined;
    const { snapshot, decision } = isClaimed ? this.#look(serviceId) : seen;
    const { sizing, waitsForCommit } = decision;
    this.#forgetOtherSizes(decision);
    const actions = this.#actions.affordable(serviceId, decision.actions);
    const failed = await this.#actions.run(serviceId, actions, sizing?.requestId);
    const { commits, rollouts } = this.#options;
    commits.reconciled(serviceId, waitsForCommit);
    // This comes before the report, so that a rollout that ends during the report wakes this service.
    // A service keeps its turn during its dry runs and searches. In a long line, their results would be outdated at its
    // next turn.
    const isTrying = sizing?.waitReason === "dry-runs" && this.#actions.isBusy(serviceId);
    if (!isTrying && !decision.actions.some(isCheck))
      rollouts.reconciled(serviceId, sizing?.waitReason === "overall-limit");
    if (failed?.error !== undefined) throw failed.error;
    if (unreported) throw unreported.error;
    if (actions.some(({ type }) => type !== "refresh")) {
      // The write that a check allows follows at once: after a longer delay, the result would be outdated again.
      const isChecked = !failed && actions.every(isCheck) && !this.#actions.isBusy(serviceId);
      if (isChecked) return { requeueAfterMs: 0 };
      // The report of a failure and a timeout do not wait for the next reconciliation, because its delay grows.
      const written = this.#look(serviceId);
      const requeueAfterMs = failed ? await this.#report(written) : recheckAfterMs(written);
      return { requeue: true, requeueAfterMs };
    }
    const requeueAfterMs = await this.#report({ snapshot, decision });
    // Reads can repeat for as long as a workload cannot be released, so they delay neither the report nor a recheck.
    if (decision.actions.length > 0) return { requeue: true, requeueAfterMs };
    return { requeueAfterMs, isUnfinished: this.#actions.isBusy(serviceId) };
  }

  /** Call it when this process begins to write. */
  begin(): void {
    this.#leadingSinceMs = this.#options.clock.now();
  }

  /** From now on, reconciliations only finish commits. Unfinished ones would leave Deployments paused and pods held. */
  end(): void {
    this.#isEnding = true;
  }

  /** Resolves when no write is in flight, or after a timeout. */
  settled(): Promise<void> {
    return this.#actions.settled();
  }

  /**
   * Corrects a status that says Ready, before the writes that make it untrue. If that fails, the pipes still get their
   * size.
   *
   * @returns the error if the status could not be written
   * @throws the error if the view of the PipeScaling is outdated
   */
  async #retract({ snapshot, decision }: Seen): Promise<{ readonly error: unknown } | undefined> {
    try {
      await this.#reporter.report(snapshot, decision);
      return undefined;
    } catch (error) {
      if (isConflict(error)) throw error;
      return { error };
    }
  }

  /**
   * Forgets failed attempts at other sizes when the pods have the present one. No annotation shows them, only the memory
   * of this process.
   */
  #forgetOtherSizes({ sizing }: Decision): void {
    const failures = sizing?.assessments.flatMap(failuresOfOtherSizes) ?? [];
    for (const { uid, purpose } of failures) this.#options.writes.forget(uid, purpose);
  }

  /** @returns the delay until the decision or its report is due again */
  async #report(seen: Seen): Promise<number | undefined> {
    const retryAtMs = await this.#reporter.report(seen.snapshot, seen.decision);
    return recheckAfterMs(seen, retryAtMs);
  }

  #look(serviceId: string): Seen {
    const { clock, timeouts, policy, rollouts, commits } = this.#options;
    const isEnding = this.#isEnding;
    const sources = { ...this.#options, leadingSinceMs: this.#leadingSinceMs };
    const scope = { ...this.#options, timeouts: { ...timeouts, ...(isEnding ? ENDING : {}) } };
    const snapshot = observe(sources, scope, serviceId, clock.now());
    const decision = decide(snapshot, {
      policy,
      isEnding,
      makesDryRuns: true,
      overallFree: rollouts.freeFor(serviceId),
      commitsFree: commits.freeFor(serviceId),
    });
    return { snapshot, decision };
  }
}

interface Seen {
  readonly snapshot: Snapshot;
  readonly decision: Decision;
}

/** Returns the delay until the decision may change without an event, but at most until `mostAtMs`. */
function recheckAfterMs(
  { snapshot, decision }: Seen,
  mostAtMs = Number.POSITIVE_INFINITY,
): number | undefined {
  const atMs = Math.min(mostAtMs, recheckAtMs(snapshot, decision));
  return Number.isFinite(atMs) ? atMs - snapshot.nowMs : undefined;
}

/** True for dry runs and searches, after which a write may follow. */
function isCheck({ type }: Action): boolean {
  return type === "dry-run" || type === "check-room";
}

/** Shorter timeouts, because Kubernetes gives a process little time to end. */
const ENDING: Partial<Timeouts> = { commitMs: 10_000 };

/** True if the status says that all pipes have their size, and they do not. */
function claimsSize({ snapshot: { scaling }, decision: { sizing } }: Seen): boolean {
  if (!sizing || sizing.assessments.every(({ state }) => state === "done")) return false;
  if (!scaling || scaling.status.observedGeneration !== scaling.metadata.generation) return false;
  const { conditions = [] } = scaling.status;
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}
