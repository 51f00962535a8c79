import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import { describeSize } from "../../domain/size.ts";
import { isConflict, isOutcomeUnknown } from "../../kube/errors.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { objectPath } from "../../kube/paths.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { mergePatch } from "../../runtime/merge-patch.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { RecordSpan } from "../../telemetry/span.ts";
import { type Applier, readCurrent } from "../apply/applier.ts";
import { writeFailed } from "../apply/write-error.ts";
import type { Decision, Sizing } from "../decide/decision.ts";
import { isHindered } from "../in-place/fall-back.ts";
import type { Caches } from "../observe/caches.ts";
import type { Snapshot } from "../observe/observe.ts";
import { type PipeScalingView, toPipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import { dueAtMs, errorOf } from "../retry.ts";
import { eventsOf, pipeEvent } from "./events.ts";
import { hindrancesFailAtMs, isOverdueIn } from "./failures.ts";
import type { ControllerMetrics } from "./metrics.ts";
import { rescaleSpans, type Step } from "./rescale-spans.ts";
import type { StatusChange } from "./resize-methods.ts";
import { statusOf, unmanagedReason, unmanagedStatus } from "./status.ts";
import { contentOf } from "./status-content.ts";

export interface ReporterOptions
  extends Pick<Applier, "client" | "writes" | "assertMayWrite" | "onEtcdRollback"> {
  readonly caches: Caches;
  readonly policy: RolloutPolicy;
  readonly events: Pick<EventRecorder, "record">;
  readonly metrics: Pick<ControllerMetrics, "passed" | "reported">;
  readonly log: Logger;
  /** Absent if tracing is off. */
  readonly recordSpan?: RecordSpan | undefined;
}

type Raw = KubeObject & PipeScaling;

/** Writes the status of PipeScalings, and records Events, metrics and spans. It is the only writer of a status. */
export class Reporter {
  readonly #options: ReporterOptions;
  /** Statuses that may have been stored, by UID of the PipeScaling. */
  readonly #unanswered = new Map<string, Step>();

  constructor(options: ReporterOptions) {
    this.#options = options;
    options.caches.scalings.onChange((change) => {
      if (change.type === "deleted") this.#unanswered.delete(change.previous.metadata.uid);
    });
  }

  /**
   * Reports the state of a service.
   *
   * @returns when the status changes without an event, or is written again because it could not be written, in
   *     milliseconds since 1970; otherwise infinity
   */
  async report(snapshot: Snapshot, decision: Pick<Decision, "sizing" | "stranded">): Promise<number> {
    const { sizing } = decision;
    const { serviceId, scaling, unmanaged, pipes } = snapshot;
    const { policy, metrics, writes } = this.#options;
    const reports = unmanaged.map((each) => this.#reportUnmanaged(each, snapshot));
    this.#reportUnmanagedPipes(snapshot);
    if (scaling && sizing) this.#noteHindrances(scaling, sizing);
    const status = scaling && statusOf(snapshot, scaling, decision, policy);
    if (scaling && status) {
      writes.forget(scaling.metadata.uid, "notice");
      reports.push(this.#write({ scaling, after: status, pipes }, snapshot));
    }
    const states = sizing?.assessments.map(({ state }) => state) ?? [];
    metrics.passed(serviceId, status ?? (unmanaged[0] && unmanagedStatus(snapshot, unmanaged[0])), states);
    const changesAtMs =
      scaling && sizing
        ? hindrancesFailAtMs({ scaling, sizing, policy, nowMs: snapshot.nowMs })
        : Number.POSITIVE_INFINITY;
    return Math.min(changesAtMs, ...(await Promise.all(reports)));
  }

  /**
   * Remembers since when a pipe waits because of a hindrance. An attempt that fails again does not end that time, and a
   * wait for something else does, such as for a rollout window.
   */
  #noteHindrances({ status }: PipeScalingView, { assessments, desired }: Sizing): void {
    const { writes } = this.#options;
    const size = describeSize(desired.size);
    for (const each of assessments) {
      const { pipe, state } = each;
      const { uid } = pipe.metadata;
      const isNoted = writes.isNoted(uid, "hindered", size);
      const isTried = state === "rolling" || state === "retrying";
      if (!isHindered(each) && !isTried) writes.forget(uid, "hindered");
      else if (isHindered(each) && !isNoted && !isOverdueIn(status, pipe, size))
        writes.note(uid, "hindered", size);
    }
  }

  /** Once for each generation and reason: another controller may manage it, and report something else. */
  async #reportUnmanaged(unmanaged: PipeScalingView, snapshot: Snapshot): Promise<number> {
    const { reason, message } = unmanagedReason(snapshot, "scaling");
    const { uid, namespace, name, generation } = unmanaged.metadata;
    const { writes, log } = this.#options;
    const notice = JSON.stringify([generation, reason, message]);
    if (writes.isNoted(uid, "notice", notice)) return Number.POSITIVE_INFINITY;
    const change = { scaling: unmanaged, after: unmanagedStatus(snapshot, unmanaged), pipes: [] };
    const retryAtMs = await this.#write(change, snapshot);
    if (Number.isFinite(retryAtMs)) return retryAtMs;
    writes.note(uid, "notice", notice);
    log.warn({ namespace, name, reason }, `the PipeScaling is left alone: ${message}`);
    return retryAtMs;
  }

  /** If a pipe has no PipeScaling with a status, an Event on the pipe reports why it is not resized. */
  #reportUnmanagedPipes(snapshot: Snapshot): void {
    const { tier, scaling, pipes, orphans } = snapshot;
    const { writes, events, log } = this.#options;
    const unmanaged = [
      ...orphans.map((pipe) => ({ pipe, why: unmanagedReason(snapshot, "pipe") })),
      ...(tier.ok || scaling ? [] : pipes.map((pipe) => ({ pipe, why: tier.obstacle }))),
    ];
    for (const { pipe, why } of unmanaged) {
      const { reason, message } = why;
      const { uid, namespace } = pipe.metadata;
      const notice = JSON.stringify([reason, message]);
      if (writes.isNoted(uid, "notice", notice)) continue;
      writes.note(uid, "notice", notice);
      events.record(pipeEvent(pipe, { type: "Warning", reason, note: message }));
      log.warn({ namespace, pipe: nameOf(pipe), reason }, `the pipe is left alone: ${message}`);
    }
  }

  /**
   * Writes the status if it changed, unless the last attempt failed a moment ago, or another writer undoes it.
   *
   * @returns when to try again; infinity if that is not necessary
   * @throws the error of a write for the managed PipeScaling, unless the server says when to try again
   */
  async #write(wanted: Omit<StatusChange, "reported">, snapshot: Snapshot): Promise<number> {
    const { scaling, after, pipes } = wanted;
    this.#confirm(scaling);
    const status = mergePatch(scaling.status, after);
    if (!status) {
      this.#remember(wanted);
      return Number.POSITIVE_INFINITY;
    }
    const { client, caches, assertMayWrite, writes, log } = this.#options;
    const { uid, generation, name, namespace, resourceVersion } = scaling.metadata;
    const retryAtMs = this.#retryAtMs(scaling, snapshot);
    if (retryAtMs > snapshot.nowMs) return retryAtMs;
    const content = contentOf(after);
    const repeatAtMs = this.#repeatAtMs(scaling, content, snapshot);
    if (repeatAtMs > snapshot.nowMs) return repeatAtMs;
    assertMayWrite();
    const reported = new Set(pipes.filter((pipe) => this.#isReported(pipe)).map((pipe) => pipe.metadata.uid));
    const step = { ...wanted, reported, nowMs: snapshot.nowMs };
    const attempt = writes.begin(uid, "status", "");
    try {
      const written = await client.json<Raw>({
        method: "PATCH",
        path: `${objectPath(PIPE_SCALINGS, namespace, name)}/status`,
        query: { fieldManager: CONTROLLER_FIELD_MANAGER },
        patchType: "application/merge-patch+json",
        body: { apiVersion: API_VERSION, kind: KIND, metadata: { uid, resourceVersion }, status },
      });
      caches.scalings.observe(toPipeScalingView(written));
    } catch (error) {
      const failure = { ...writeFailed(error), isConflict: isConflict(error) };
      writes.failed(attempt, failure, generation);
      // Nothing would remove the status of an object that has left meanwhile.
      const isKnown = caches.scalings.get(`${namespace}/${name}`)?.metadata.uid === uid;
      if (isKnown && isOutcomeUnknown(error)) this.#unanswered.set(uid, step);
      if (failure.isConflict) await this.#refresh(scaling);
      // Only this write waits: the service may be in a commit, and an unmanaged PipeScaling may be of another tenant.
      const isDelayed = failure.retryAfterMs !== undefined && !failure.isConflict;
      if (scaling === snapshot.scaling && !isDelayed) throw error;
      log.warn({ namespace, name, err: error }, "a status was not written; trying again");
      return this.#retryAtMs(scaling, snapshot);
    }
    this.#written(step);
    return Number.POSITIVE_INFINITY;
  }

  /** Without a response, the next version of the PipeScaling shows whether the status was stored. */
  #confirm({ metadata: { uid, resourceVersion }, status }: PipeScalingView): void {
    const step = this.#unanswered.get(uid);
    if (!step || step.scaling.metadata.resourceVersion === resourceVersion) return;
    this.#unanswered.delete(uid);
    if (contentOf(status) === contentOf(step.after)) this.#written(step);
  }

  /** Records what is new in a status that was stored; nothing if another writer had removed the same status. */
  #written(step: Step): void {
    const { events, metrics, recordSpan, writes } = this.#options;
    const { scaling, after } = step;
    const { uid } = scaling.metadata;
    const content = contentOf(after);
    const isRepeated = writes.isNoted(uid, "written-status", content);
    this.#unanswered.delete(uid);
    writes.forget(uid, "status");
    writes.note(uid, "written-status", content);
    this.#remember(step);
    if (isRepeated) return;
    const recorded = eventsOf(step);
    metrics.reported(scaling.status, after, recorded);
    for (const event of recorded) events.record(event);
    if (recordSpan) rescaleSpans(step).forEach(recordSpan);
  }

  /**
   * Remembers the rollouts that a stored status shows. A pipe that is resized by another writer leaves the status until
   * it has its size again, and that is no news.
   */
  #remember({ pipes, after }: Pick<StatusChange, "pipes" | "after">): void {
    const { writes } = this.#options;
    for (const pipe of pipes) {
      if (!after.pipes?.resizedBy?.[nameOf(pipe)] || this.#isReported(pipe)) continue;
      writes.note(pipe.metadata.uid, "reported-rollout", lastRolloutOf(pipe));
    }
  }

  #isReported(pipe: PipeView): boolean {
    return this.#options.writes.isNoted(pipe.metadata.uid, "reported-rollout", lastRolloutOf(pipe));
  }

  /** When a status that could not be written may be tried again, in milliseconds since 1970; 0 at once. */
  #retryAtMs(scaling: PipeScalingView, snapshot: Snapshot): number {
    const { uid } = scaling.metadata;
    const record = this.#options.writes.get(uid, "status");
    return errorOf(record) ? dueAtMs(record, scaling, { ...snapshot, scaling }) : 0;
  }

  /**
   * Returns when a status with this content may be written, in milliseconds since 1970. If the last one had the same
   * content, another writer removed it. It is written again after the delays for field conflicts, then once an hour,
   * because nothing else would correct it. If it is still there, only numbers in messages have changed, which may happen
   * all the time.
   */
  #repeatAtMs(scaling: PipeScalingView, content: string, snapshot: Snapshot): number {
    const { uid } = scaling.metadata;
    const written = this.#options.writes.get(uid, "written-status");
    if (written?.subject !== content) return 0;
    const { repeatStatusMs, refreshStatusMs } = snapshot.timeouts;
    if (contentOf(scaling.status) === content) return written.lastAtMs + refreshStatusMs;
    const repeatableMs = dueAtMs(written, scaling, { ...snapshot, scaling });
    return Math.min(repeatableMs, written.lastAtMs + repeatStatusMs);
  }

  /** Reads the PipeScaling, so that the next attempt has its current version. */
  async #refresh(scaling: PipeScalingView): Promise<void> {
    const { scalings } = this.#options.caches;
    const current = await readCurrent<Raw>(this.#options, PIPE_SCALINGS, scalings, scaling);
    if (current) scalings.observe(toPipeScalingView(current));
  }
}

/** Identifies the last rollout of a pipe among those of its workload. */
function lastRolloutOf({ lastRollout }: PipeView): string {
  return `generation ${lastRollout?.generation}`;
}
