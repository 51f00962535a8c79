import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../crd/names.ts";
import type { PipeScaling, PipeScalingStatus } from "../crd/pipe-scaling.ts";
import type { Tiers } from "../domain/tier.ts";
import type { KubeObject } from "../kube/objects.ts";
import { DEPLOYMENTS, objectPath } from "../kube/paths.ts";
import type { EventRecorder } from "../runtime/event-recorder.ts";
import { mergePatch } from "../runtime/merge-patch.ts";
import type { Outcome } from "../runtime/workers.ts";
import type { RolloutPolicy } from "../settings/rollout-policy.ts";
import type { RecordSpan } from "../telemetry/span.ts";
import { ActionRunner, type ActionRunnerOptions } from "./apply/action-runner.ts";
import type { InPlacePace } from "./apply/in-place-pace.ts";
import type { RolloutBudget } from "./apply/rollout-budget.ts";
import { type Decision, decide } from "./decide/decide.ts";
import { recheckAtMs } from "./decide/recheck.ts";
import type { Sizing } from "./decide/sizing.ts";
import type { DeletedScalings } from "./observe/deleted-scalings.ts";
import type { DeploymentView } from "./observe/deployment-view.ts";
import { observe } from "./observe/observe.ts";
import { type PipeScalingView, toPipeScalingView } from "./observe/pipe-scaling-view.ts";
import type { Snapshot } from "./observe/snapshot.ts";
import { eventsOf } from "./report/events.ts";
import type { ControllerMetrics } from "./report/metrics.ts";
import { Notices } from "./report/notices.ts";
import { rescaleSpans } from "./report/rescale-spans.ts";
import { foreignReason, foreignStatus, statusOf } from "./report/status.ts";

export interface ReconcilerOptions extends ActionRunnerOptions {
  /** Namespace of the records. */
  readonly namespace: string;
  readonly tiers: Tiers;
  readonly policy: RolloutPolicy;
  readonly budget: RolloutBudget;
  readonly begins: InPlacePace;
  readonly commits: InPlacePace;
  readonly deletedScalings: Pick<DeletedScalings, "find">;
  readonly events: Pick<EventRecorder, "record">;
  readonly metrics: Pick<ControllerMetrics, "passed" | "reported">;
  /** Absent if tracing is off. */
  readonly recordSpan?: RecordSpan | undefined;
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
  readonly #notices: Notices;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#actions = new ActionRunner(options);
    const { scalings, pipes } = options.caches;
    this.#notices = new Notices([scalings, pipes]);
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
    await this.#reportAll(after, next.sizing);
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

  async #reportAll(snapshot: Snapshot, sizing: Sizing | undefined): Promise<void> {
    const { serviceId, scaling, foreign } = snapshot;
    const { policy, metrics } = this.#options;
    const reports = foreign.map((each) => this.#reportForeign(each, foreignStatus(snapshot, each)));
    this.#reportUnmanagedPipes(snapshot);
    const status = scaling
      ? statusOf(snapshot, scaling, sizing, policy)
      : foreign[0] && foreignStatus(snapshot, foreign[0]);
    if (scaling && status) {
      this.#notices.forget(scaling);
      reports.push(this.#report(scaling, status, snapshot));
    }
    const states = sizing?.assessments.map(({ state }) => state) ?? [];
    metrics.passed(serviceId, status, states);
    await Promise.all(reports);
  }

  /** Once for each generation and reason: another controller may manage it, and report something else. */
  async #reportForeign(foreign: PipeScalingView, status: PipeScalingStatus): Promise<void> {
    const { reason, message } = status.conditions?.[0] ?? {};
    const { namespace, name, generation } = foreign.metadata;
    const text = JSON.stringify([generation, reason, message]);
    if (!this.#notices.isNew(foreign, text)) return;
    await this.#report(foreign, status);
    this.#notices.add(foreign, text);
    this.#options.log.warn({ namespace, name, reason }, `the PipeScaling is left alone: ${message}`);
  }

  /** If a pipe has no PipeScaling with a status, an Event on the pipe reports why it is not resized. */
  #reportUnmanagedPipes(snapshot: Snapshot): void {
    const { tier, scaling, pipes, orphans } = snapshot;
    const { events, log } = this.#options;
    const unmanaged = [
      ...orphans.map((pipe) => ({ pipe, why: foreignReason(snapshot) })),
      ...(tier.ok || scaling ? [] : pipes.map((pipe) => ({ pipe, why: tier.obstacle }))),
    ];
    for (const { pipe, why } of unmanaged) {
      const { reason, message } = why;
      const text = JSON.stringify([reason, message]);
      if (!this.#notices.isNew(pipe, text)) continue;
      this.#notices.add(pipe, text);
      const { namespace, name, uid } = pipe.metadata;
      const regarding = { apiVersion: DEPLOYMENTS.apiVersion, kind: "Deployment", namespace, name, uid };
      events.record({ regarding, type: "Warning", reason, action: "Rescale", note: message });
      log.warn({ namespace, pipe: name, reason }, `the pipe is left alone: ${message}`);
    }
  }

  /** Writes the status if it changed. */
  async #report(scaling: PipeScalingView, status: PipeScalingStatus, snapshot?: Snapshot): Promise<void> {
    const patch = mergePatch(scaling.status, status);
    if (!patch) return;
    const { client, caches, events, metrics, recordSpan, assertMayWrite } = this.#options;
    const { name, namespace, uid, resourceVersion } = scaling.metadata;
    assertMayWrite();
    const written = await client.json<KubeObject & PipeScaling>({
      method: "PATCH",
      path: `${objectPath(PIPE_SCALINGS, namespace, name)}/status`,
      query: { fieldManager: CONTROLLER_FIELD_MANAGER },
      patchType: "application/merge-patch+json",
      body: { apiVersion: API_VERSION, kind: KIND, metadata: { uid, resourceVersion }, status: patch },
    });
    caches.scalings.observe(toPipeScalingView(written));
    const recorded = eventsOf(scaling, scaling.status, status, snapshot?.pipes);
    metrics.reported(scaling.status, status, recorded);
    for (const event of recorded) events.record(event);
    if (recordSpan && snapshot) rescaleSpans({ ...snapshot, scaling, after: status }).forEach(recordSpan);
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
