import type { Tiers } from "../domain/tier.ts";
import type { Outcome } from "../runtime/workers.ts";
import type { RolloutPolicy } from "../settings/rollout-policy.ts";
import { ActionRunner, type ActionRunnerOptions } from "./apply/action-runner.ts";
import type { InPlacePace } from "./apply/in-place-pace.ts";
import type { RolloutBudget } from "./apply/rollout-budget.ts";
import { decide } from "./decide/decide.ts";
import type { Decision } from "./decide/decision.ts";
import { recheckAtMs } from "./decide/recheck.ts";
import type { DeploymentView } from "./observe/deployment-view.ts";
import { observe, type Sources } from "./observe/observe.ts";
import type { Snapshot } from "./observe/snapshot.ts";
import { Reporter, type ReporterOptions } from "./report/reporter.ts";
import type { Timeouts } from "./timeouts.ts";

export interface ReconcilerOptions extends ActionRunnerOptions, ReporterOptions {
  /** Namespace of the records. */
  readonly namespace: string;
  readonly tiers: Tiers;
  readonly policy: RolloutPolicy;
  readonly timeouts: Timeouts;
  readonly budget: RolloutBudget;
  readonly begins: InPlacePace;
  readonly commits: InPlacePace;
  readonly deletedScalings: Sources["deletedScalings"];
}

interface Acted {
  readonly before: Snapshot;
  readonly decision: Decision;
  readonly outdated: { readonly error: unknown } | undefined;
}

/** One reconciliation of a service: observe, decide, apply, report. */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #actions: ActionRunner;
  readonly #reporter: Reporter;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#actions = new ActionRunner(options);
    this.#reporter = new Reporter(options);
  }

  async reconcile(serviceId: string): Promise<Outcome> {
    const { before, decision, outdated } = await this.#act(serviceId);
    // The report describes the state after the writes. The next reconciliation starts the next actions.
    const isUnchanged = decision.actions.length === 0;
    const after = isUnchanged ? before : this.#observe(serviceId);
    const next = isUnchanged ? decision : this.#decide(after);
    const { resizes, begins, commits, budget } = this.#options;
    if (resizes.active > 0) resizes.keep(serviceId, resizedInPlace(after, next));
    commits.reconciled(serviceId, next.waitsForCommit === true);
    const holdBack = next.sizing?.holdBack;
    begins.reconciled(serviceId, holdBack === "in-place-pace");
    // Before the report, so that a rollout that ends meanwhile wakes this service.
    budget.reconciled(serviceId, holdBack === "overall-limit");
    await this.#reporter.report(after, next.sizing);
    if (outdated) throw outdated.error;
    if (!isUnchanged && next.actions.length > 0) return { requeue: true };
    const atMs = recheckAtMs(after, next, this.#options);
    const requeueAfterMs = atMs === undefined ? undefined : atMs - after.nowMs;
    return { requeueAfterMs, isUnfinished: this.#actions.isBusy(serviceId) };
  }

  /** Resolves when no write is in flight, or after a timeout. */
  settled(): Promise<void> {
    return this.#actions.settled();
  }

  async #act(serviceId: string): Promise<Acted> {
    const before = this.#observe(serviceId);
    const decision = this.#decide(before);
    const outdated = await this.#run(serviceId, decision);
    const isValidation = decision.actions.some(({ type }) => type === "validate");
    if (!isValidation || outdated) return { before, decision, outdated };
    // Dry runs do not change the status, so the canary follows in the same reconciliation.
    const validated = this.#observe(serviceId);
    const next = this.#decide(validated);
    return { before: validated, decision: next, outdated: await this.#run(serviceId, next) };
  }

  #run(serviceId: string, { actions, sizing }: Decision): Promise<Acted["outdated"]> {
    const { commits } = this.#options;
    // Before anything can interrupt this reconciliation, so that no other one takes the same turn.
    for (const action of actions) {
      if (action.type === "resize" && action.isCommit) commits.take();
    }
    return this.#actions.run(serviceId, actions, sizing?.requestId);
  }

  #observe(serviceId: string): Snapshot {
    const { caches, clock, writes, validations, deletedScalings, resizes, failedSteps } = this.#options;
    const sources = {
      ...{ caches, writes: writes.records, validations: validations.records, deletedScalings },
      inPlace: (pipes: readonly DeploymentView[]) => resizes.views(pipes),
      failedSteps: failedSteps.records,
      stepsInFlight: failedSteps.inFlight,
    };
    return observe(sources, this.#options, serviceId, clock.now());
  }

  #decide(snapshot: Snapshot): Decision {
    const { policy, budget, begins, commits } = this.#options;
    const limits = {
      overallFree: budget.freeFor(snapshot.serviceId),
      freeBegins: begins.free(),
      freeCommits: commits.free(),
    };
    return decide(snapshot, { policy, ...limits, validatesFirst: true });
  }
}

/**
 * UIDs of the Deployments whose resize in place has begun, begins, or has to end. While a service is suspended, only
 * commits go on, and another service may use the rollout budget. After that, the resize begins again, with new timeouts.
 */
function resizedInPlace({ pipes, scaling }: Snapshot, { actions, sizing }: Decision): ReadonlySet<string> {
  const assessments = scaling?.spec.suspend ? [] : (sizing?.assessments ?? []);
  const begun = assessments.filter(({ inPlace }) => inPlace);
  const beginning = actions.flatMap((action) => (action.type === "begin-in-place" ? [action] : []));
  const paused = pipes.filter(({ isPausedByUs }) => isPausedByUs);
  const active = [...begun, ...beginning].map(({ pipe }) => pipe);
  return new Set([...active, ...paused].map(({ metadata }) => metadata.uid));
}
