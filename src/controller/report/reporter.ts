import { API_VERSION, CONTROLLER_FIELD_MANAGER, KIND, PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import type { KubeClient } from "../../kube/client.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { DEPLOYMENTS, objectPath } from "../../kube/paths.ts";
import type { EventRecorder } from "../../runtime/event-recorder.ts";
import { mergePatch } from "../../runtime/merge-patch.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Logger } from "../../telemetry/log.ts";
import type { RecordSpan } from "../../telemetry/span.ts";
import type { Sizing } from "../decide/sizing.ts";
import type { Caches } from "../observe/caches.ts";
import { type PipeScalingView, toPipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { eventsOf } from "./events.ts";
import type { ControllerMetrics } from "./metrics.ts";
import { Notices } from "./notices.ts";
import { rescaleSpans } from "./rescale-spans.ts";
import { foreignReason, foreignStatus, statusOf } from "./status.ts";

export interface ReporterOptions {
  readonly client: Pick<KubeClient, "json">;
  readonly caches: Caches;
  readonly policy: RolloutPolicy;
  readonly events: Pick<EventRecorder, "record">;
  readonly metrics: Pick<ControllerMetrics, "passed" | "reported">;
  readonly log: Logger;
  /** Absent if tracing is off. */
  readonly recordSpan?: RecordSpan | undefined;
  /** Throws when this process may no longer write (runtime/leader.ts). */
  readonly assertMayWrite: () => void;
}

/** Writes the status of PipeScalings, and records Events, metrics and spans. It is the only writer of a status. */
export class Reporter {
  readonly #options: ReporterOptions;
  readonly #notices: Notices;

  constructor(options: ReporterOptions) {
    this.#options = options;
    const { scalings, pipes } = options.caches;
    this.#notices = new Notices([scalings, pipes]);
  }

  /** Reports the state of a service after the writes of a reconciliation. @param sizing absent if the pipes must not be resized */
  async report(snapshot: Snapshot, sizing: Sizing | undefined): Promise<void> {
    const { serviceId, scaling, foreign } = snapshot;
    const { policy, metrics } = this.#options;
    const reports = foreign.map((each) => this.#reportForeign(each, foreignStatus(snapshot, each)));
    this.#reportUnmanagedPipes(snapshot);
    const status = scaling
      ? statusOf(snapshot, scaling, sizing, policy)
      : foreign[0] && foreignStatus(snapshot, foreign[0]);
    if (scaling && status) {
      this.#notices.forget(scaling);
      reports.push(this.#write(scaling, status, snapshot));
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
    await this.#write(foreign, status);
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
  async #write(scaling: PipeScalingView, status: PipeScalingStatus, snapshot?: Snapshot): Promise<void> {
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
