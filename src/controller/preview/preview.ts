import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import { describeSize } from "../../domain/size.ts";
import type { Action } from "../decide/actions.ts";
import type { Assessment } from "../decide/assessment.ts";
import { decide } from "../decide/decide.ts";
import type { DecideOptions, Decision } from "../decide/decision.ts";
import type { Sizing } from "../decide/sizing.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import { isSize } from "../observe/resources.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { waitingFor } from "../report/waiting.ts";

/** The next action of the controller for a pipe without the desired size, or for a service. */
export interface PreviewedStep {
  readonly service: string;
  readonly namespace: string | undefined;
  readonly pipe?: string;
  readonly size?: string | undefined;
  readonly desired?: string;
  readonly action: string;
}

export interface Preview {
  readonly steps: readonly PreviewedStep[];
  /** Number of rollouts that would start. */
  readonly begun: number;
}

/**
 * Computes the first reconciliation of a service, if it ran now. There are no steps for pipes with the desired size.
 */
export function preview(snapshot: Snapshot, options: DecideOptions): Preview {
  const { serviceId: service, namespace, tier } = snapshot;
  const about = { service, namespace };
  if (!tier.ok) return { steps: [{ ...about, action: `leave it: ${tier.obstacle.message}` }], begun: 0 };
  const decision = decide(snapshot, options);
  const creation = decision.actions.find((action) => action.type === "create-pipe-scaling");
  if (!creation) return previewOfPipes(snapshot, decision);
  // The pipes are decided with the PipeScaling that would be created.
  const later = { ...snapshot, scaling: madeUp(service, creation.namespace, creation.spec) };
  const { steps, begun } = previewOfPipes(later, decide(later, options));
  const { replicaCpuMillicores: cpuMillicores, replicaMemoryGb: memoryGib } = creation.spec;
  const hasSize = cpuMillicores !== undefined && memoryGib !== undefined;
  const size = hasSize ? describeSize({ cpuMillicores, memoryGib }) : "no size of its own";
  const suspended = creation.spec.suspend ? ", suspended" : "";
  return {
    steps: [{ ...about, action: `create its PipeScaling with ${size}${suspended}` }, ...steps],
    begun,
  };
}

function previewOfPipes({ serviceId: service, namespace, scaling }: Snapshot, decision: Decision): Preview {
  const { sizing, actions } = decision;
  if (!sizing) return { steps: [], begun: 0 };
  const steps = sizing.assessments
    .filter(({ state }) => state !== "done")
    .map((assessment) => ({
      service,
      namespace,
      pipe: assessment.pipe.metadata.name,
      size: assessment.pipe.size && describeSize(assessment.pipe.size),
      desired: describeSize(sizing.desired.size),
      action: scaling?.spec.suspend ? "leave it: suspended" : actionFor(assessment, actions, sizing),
    }));
  return { steps, begun: actions.filter(isBeginning).length };
}

function isBeginning({ type }: Action): boolean {
  return type === "resize" || type === "begin-in-place";
}

function actionFor(
  { pipe, state, failure, abandoned }: Assessment,
  actions: readonly Action[],
  sizing: Sizing,
): string {
  if (actions.some(({ type }) => type === "confirm-generation"))
    return "wait until the PipeScaling is seen in the generation of the last rollout of a pipe";
  const own = actions.find((action) => "pipe" in action && action.pipe === pipe);
  if (own && isBeginning(own)) return "resize it now";
  if (own?.type === "roll-back")
    return `roll it back to ${isSize(own.size) ? describeSize(own.size) : "its earlier resources"}: ${(abandoned ?? failure)?.message}`;
  switch (state) {
    case "done":
    case "rolling":
      return "wait for its rollout";
    case "waiting":
      return `resize it later: it waits${waitingFor(sizing)}`;
    case "paused":
      return "wait for its owner, who has paused its rollouts";
    case "failed":
    case "retrying":
    case "unsizable":
      return `leave it: ${failure?.message}`;
  }
}

function madeUp(name: string, namespace: string, spec: PipeScalingSpec): PipeScalingView {
  return {
    metadata: { name, namespace, uid: "", resourceVersion: "", generation: 1 },
    isBeingDeleted: false,
    spec,
    status: {},
    requestAnnotation: undefined,
    retryRequestedAtMs: undefined,
    windowIgnoredUntilMs: undefined,
    malformedAnnotations: [],
  };
}
