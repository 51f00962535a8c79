import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../crd/names.ts";
import type { PipeFailure, PipeScaling, PipeScalingStatus } from "../crd/pipe-scaling.ts";
import { formatSize } from "../domain/size.ts";
import type { Tiers } from "../domain/tier.ts";
import { KubeUnreachableError } from "../kube/errors.ts";
import type { KubeObject } from "../kube/objects.ts";
import { objectPath } from "../kube/paths.ts";
import type { Clock } from "../runtime/clock.ts";
import type { EventRecorder } from "../runtime/event-recorder.ts";
import { mergePatch } from "../runtime/merge-patch.ts";
import type { Outcome } from "../runtime/workers.ts";
import type { Logger } from "../telemetry/log.ts";
import type { RecordSpan } from "../telemetry/span.ts";
import { type Applier, apply } from "./apply/apply.ts";
import type { RolloutBudget } from "./apply/rollout-budget.ts";
import { type Action, type Decision, decide, failuresOf, type Sizing } from "./decide/decide.ts";
import { observe } from "./observe/observe.ts";
import { type PipeScalingView, toPipeScalingView } from "./observe/pipe-scaling-view.ts";
import { formatAllotment } from "./observe/resources.ts";
import type { Snapshot } from "./observe/snapshot.ts";
import { newsOf } from "./report/events.ts";
import { ForeignReports } from "./report/foreign-reports.ts";
import type { ControllerMetrics } from "./report/metrics.ts";
import { rescaleSpans } from "./report/rescale-spans.ts";
import { foreignStatus, statusOf } from "./report/status.ts";

export interface ReconcilerOptions extends Applier {
  readonly clock: Clock;
  /** Namespace of the records. */
  readonly namespace: string;
  readonly tiers: Tiers;
  readonly rolloutTimeoutMs: number;
  readonly slots: RolloutBudget;
  readonly events: Pick<EventRecorder, "record">;
  readonly metrics: Pick<ControllerMetrics, "passed" | "reported">;
  /** Absent if tracing is off. */
  readonly recordSpan?: RecordSpan | undefined;
  readonly log: Logger;
}

/** One pass over a service: observe → decide → apply → report. */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #foreign: ForeignReports;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
    this.#foreign = new ForeignReports(options.caches.scalings);
  }

  async reconcile(serviceId: string): Promise<Outcome> {
    const { slots } = this.#options;
    const before = this.#observe(serviceId, []);
    const decision = this.#decide(before);
    this.#awaitPlace(serviceId, decision);
    const begun = decision.actions.filter(({ type }) => type === "resize").length;
    const { broken, refusals } = await slots.holding(begun, () => this.#apply(serviceId, decision));

    // Looked at again to describe what stands after our writes; what it would begin is for the next pass.
    const failures = [...refusals, ...failuresOf(decision)];
    const isUnchanged = decision.actions.length === 0 && failures.length === 0;
    const after = isUnchanged ? before : this.#observe(serviceId, failures);
    const next = isUnchanged ? decision : this.#decide(after);
    this.#awaitPlace(serviceId, next);
    await this.#reportAll(after, next.sizing);
    if (broken) throw broken.reason;
    const hasMore = !isUnchanged && next.actions.length > 0;
    return { requeueAfterMs: hasMore ? 0 : untilRecheck(after, next.sizing) };
  }

  #awaitPlace(serviceId: string, { sizing }: Decision): void {
    if (sizing?.holdBack === "overall-limit") this.#options.slots.waitFor(serviceId);
  }

  #observe(serviceId: string, failures: readonly PipeFailure[]): Snapshot {
    const { caches, clock } = this.#options;
    return observe(caches, this.#options, serviceId, clock.now(), failures);
  }

  #decide(snapshot: Snapshot): Decision {
    const { rolloutTimeoutMs, slots } = this.#options;
    return decide(snapshot, { rolloutTimeoutMs, overallFree: slots.free() });
  }

  /** All actions at once: one that fails does not keep the others from being done. */
  async #apply(serviceId: string, { actions, sizing }: Decision) {
    const { log, clock, slots } = this.#options;
    const results = await Promise.allSettled(
      actions.map(async (action) => {
        const refusal = await apply(this.#options, action);
        log.info({ serviceId, ...described(action), requestId: sizing?.requestId, refusal }, action.type);
        return refusal;
      }),
    );
    const broken = results.find((each) => each.status === "rejected");
    const unknown = results.filter(
      (each) => each.status === "rejected" && each.reason instanceof KubeUnreachableError,
    );
    if (unknown.length > 0) clock.after(UNKNOWN_OUTCOME_MS, slots.take(unknown.length));
    return {
      broken,
      refusals: results.flatMap((each) => (each.status === "fulfilled" ? (each.value ?? []) : [])),
    };
  }

  async #reportAll(snapshot: Snapshot, sizing: Sizing | undefined): Promise<void> {
    const { serviceId, scaling, foreign } = snapshot;
    const reports = foreign.map((foreign) => this.#reportForeign(foreign, foreignStatus(snapshot, foreign)));
    const status = scaling
      ? statusOf(snapshot, scaling, sizing)
      : foreign[0] && foreignStatus(snapshot, foreign[0]);
    if (scaling && status) {
      this.#foreign.forget(scaling);
      reports.push(this.#report(scaling, status, snapshot));
    }
    const states = sizing?.assessments.map(({ state }) => state) ?? [];
    this.#options.metrics.passed(serviceId, status, states);
    await Promise.all(reports);
  }

  async #reportForeign(foreign: PipeScalingView, status: PipeScalingStatus): Promise<void> {
    if (!mergePatch(foreign.status, status)) return;
    const { namespace, name } = foreign.metadata;
    switch (this.#foreign.next(foreign, status)) {
      case "say":
        await this.#report(foreign, status);
        return this.#foreign.said(foreign, status);
      case "yield":
        return this.#options.log.error({ namespace, name }, OVERLAP);
      case "keep quiet":
        return;
    }
  }

  /** Writes the status if it differs from what is there. */
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
    const news = newsOf(scaling, scaling.status, status);
    metrics.reported(scaling.status, status, news);
    for (const event of news) events.record(event);
    if (recordSpan && snapshot) rescaleSpans({ ...snapshot, scaling, after: status }).forEach(recordSpan);
  }
}

const OVERLAP =
  "another controller reports on this PipeScaling: no two may have a namespace of pipes in common; it is left to that one";

/** For so long a write whose answer was lost counts as a rollout: by then the watch has told whether it is one. */
const UNKNOWN_OUTCOME_MS = 10_000;

/** A place for a rollout comes free by time too, and by a write that came to nothing: of neither there is news. */
const PLACE_RECHECK_MS = 30_000;
const PLACES: readonly Sizing["holdBack"][] = ["canary", "service-limit", "overall-limit"];

function untilRecheck({ nowMs }: Snapshot, sizing: Sizing | undefined): number | undefined {
  const times = sizing?.assessments.flatMap((each) => each.recheckAtMs ?? []) ?? [];
  if (sizing && PLACES.includes(sizing.holdBack)) times.push(nowMs + PLACE_RECHECK_MS);
  return times.length === 0 ? undefined : Math.max(0, Math.min(...times) - nowMs);
}

function described(action: Action): object {
  switch (action.type) {
    case "create-pipe-scaling":
      return { namespace: action.namespace, size: action.size && formatSize(action.size) };
    case "resize":
      return {
        pipe: action.pipe.metadata.name,
        size: formatSize(action.attempt.size),
        attempt: action.attempt.attempts,
      };
    case "adopt":
    case "roll-back":
      return { pipe: action.pipe.metadata.name, size: formatAllotment(action.size) };
    case "confirm-generation":
      return { pipes: action.pipes.map(({ metadata }) => metadata.name) };
  }
}
