import { describeSize } from "../../domain/size.ts";
import type { Action } from "../actions.ts";
import type { Assessment } from "../assessment.ts";
import { decide } from "../decide/decide.ts";
import type { DecideOptions, Sizing } from "../decide/decision.ts";
import { nameOf } from "../observe/pipe-kind.ts";
import { requestedSize, toPipeScalingView } from "../observe/pipe-scaling-view.ts";
import { isSize } from "../observe/resources.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import { waitingFor } from "../report/conditions.ts";

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

const UNBORN = { uid: "", resourceVersion: "", generation: 1 };

/**
 * Computes the first reconciliation of a service, if it ran now. There are no steps for pipes with the desired size.
 */
export function preview(snapshot: Snapshot, options: DecideOptions): Preview {
  const { serviceId: service, namespace, tier } = snapshot;
  const about = { service, namespace };
  if (!tier.ok) return { steps: [{ ...about, action: `leave it: ${tier.obstacle.message}` }], begun: 0 };
  const { actions, sizing } = decide(snapshot, options);
  const creation = actions.find((action) => action.type === "create-pipe-scaling");
  if (creation) {
    const metadata = { ...UNBORN, name: service, namespace: creation.namespace };
    const scaling = toPipeScalingView({ metadata, spec: creation.spec });
    const size = requestedSize(scaling);
    const suspended = creation.spec.suspend ? ", suspended" : "";
    const action = `create its PipeScaling with ${size ? describeSize(size) : "no size of its own"}${suspended}`;
    // The pipes are decided with the PipeScaling that would be created.
    const { steps, begun } = preview({ ...snapshot, scaling }, options);
    return { steps: [{ ...about, action }, ...steps], begun };
  }
  if (!sizing) return { steps: [], begun: 0 };
  const steps = sizing.assessments
    .filter(({ state }) => state !== "done")
    .map((each) => ({
      ...about,
      pipe: nameOf(each.pipe),
      size: each.pipe.size && describeSize(each.pipe.size),
      desired: describeSize(sizing.desired.size),
      action: snapshot.scaling?.spec.suspend ? "leave it: suspended" : actionFor(each, actions, sizing),
    }));
  return { steps, begun: actions.filter(({ type }) => type === "resize").length };
}

function actionFor(
  { pipe, state, failure, abandoned, hindrance, activity, waitsForOwner }: Assessment,
  actions: readonly Action[],
  sizing: Sizing,
): string {
  if (actions.some(({ type }) => type === "confirm-generation"))
    return "wait until the PipeScaling is seen in the generation of the last rollout of a pipe";
  const own = actions.find((action) => "pipe" in action && action.pipe === pipe);
  if (own?.type === "resize" || own?.type === "resize-pod") return "resize it now";
  if (own?.type === "roll-back")
    return `roll it back to ${isSize(own.size) ? describeSize(own.size) : "its earlier resources"}: ${(abandoned ?? failure)?.message}`;
  if (own?.type === "delete-pod")
    return `delete its pod ${own.pod.metadata.name}, which has a size that failed and is not replaced by itself`;
  switch (state) {
    case "done":
    case "rolling":
      return "wait for its rollout";
    case "resized":
      return "let its template follow its pods";
    case "waiting":
      return hindrance ? `leave it: ${activity}` : `resize it later: it waits${waitingFor(sizing)}`;
    case "paused":
      return waitsForOwner ? `leave it: ${activity}` : "wait for its owner, who has paused its rollouts";
    case "failed":
    case "retrying":
    case "unsizable":
      return `leave it: ${failure?.message}`;
  }
}
