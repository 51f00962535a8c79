import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { scalingRequestFor } from "../../crd/scaling-request.ts";
import { serviceLimit } from "../../domain/rollout-plan.ts";
import { ALWAYS_OPEN } from "../../domain/rollout-window.ts";
import type { Size } from "../../domain/size.ts";
import { desiredSize, type Tier } from "../../domain/tier.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { type PipeScalingView, requestedSize } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Action } from "./actions.ts";
import { assess } from "./assess.ts";
import { decidePipes } from "./decide-pipes.ts";
import type { DecideOptions, Decision } from "./decision.ts";
import { isDue } from "./failed-step.ts";
import { specAfterDeletion, specForRecreation, wasResized } from "./recreate.ts";
import { resumeAbandoned } from "./resume.ts";
import type { Sizing } from "./sizing.ts";

export function decide(snapshot: Snapshot, options: DecideOptions): Decision {
  const { actions, ...decision } = decideAll(snapshot, options);
  return { ...decision, actions: actions.filter((action) => isDue(action, snapshot)) };
}

/** A sequence of guards: each line is a reason not to change the pipes. */
function decideAll(snapshot: Snapshot, options: DecideOptions): Decision {
  const { scaling, pipes, namespace, tier } = snapshot;
  const refreshes = [...refreshUnknown(snapshot), ...resumeAbandoned(snapshot)];
  if (namespace === undefined || !tier.ok) return { actions: refreshes };
  if (!scaling) return { actions: [...refreshes, ...create(snapshot, namespace, tier.value)] };
  if (scaling.isBeingDeleted) return { actions: refreshes };

  const desired = desiredSize(requestedSize(scaling), tier.value);
  const context = { ...snapshot, scaling, policy: options.policy, desired: desired.size };
  const assessments = pipes.map((pipe) => assess(pipe, context));
  const sizing: Sizing = {
    desired,
    requestId: requestIdOf(scaling, desired.size),
    assessments,
    holdBack: "nothing",
    blockedBy: [],
    window: ALWAYS_OPEN,
    serviceLimit: serviceLimit(pipes.length),
  };
  if (scaling.spec.suspend) return { actions: refreshes, sizing: { ...sizing, holdBack: "suspended" } };
  const ahead = pipes.filter((pipe) => isFromLaterGeneration(pipe, scaling));
  if (ahead.length > 0) {
    const confirm: Action = { type: "confirm-generation", scaling, pipes: ahead };
    return { actions: [confirm], sizing: { ...sizing, holdBack: "confirmation" } };
  }
  const decision = decidePipes({ snapshot, scaling, sizing }, options);
  return { ...decision, actions: [...refreshes, ...decision.actions] };
}

/** A PipeScaling that certainly never existed is created at once. */
function create(snapshot: Snapshot, namespace: string, tier: Tier): Action[] {
  const { serviceId, pipes, nowMs, deleted, recreateAtMs } = snapshot;
  if (pipes.length === 0) return [];
  if (recreateAtMs > nowMs && (deleted || wasResized(serviceId, pipes))) return [];
  const spec = deleted ? specAfterDeletion(deleted, pipes, tier) : specForRecreation(serviceId, pipes);
  return [{ type: "create-pipe-scaling", namespace, name: serviceId, spec }];
}

/** A write without a response counts against the rollout budget until a read shows its outcome. */
function refreshUnknown({ pipes, writes }: Snapshot): Action[] {
  return pipes
    .filter(({ metadata }) => writes.get(metadata.uid)?.outcome.type === "unknown")
    .map((pipe) => ({ type: "refresh", pipe }));
}

function requestIdOf(scaling: PipeScalingView, desired: Size): string | undefined {
  return scalingRequestFor(requestedSize(scaling) ?? desired, scaling.requestAnnotation)?.requestId;
}

/**
 * Returns true if our view of the PipeScaling is older than a rollout of the pipe, or etcd was restored from a
 * snapshot.
 */
function isFromLaterGeneration({ lastRollout }: DeploymentView, { metadata }: PipeScalingView): boolean {
  return lastRollout?.scalingUid === metadata.uid && lastRollout.scalingGeneration > metadata.generation;
}

/** Returns the failures of all pipes, for the status. */
export function failuresOf({ sizing }: Pick<Decision, "sizing">): PipeFailure[] {
  return sizing?.assessments.flatMap((each) => each.failure ?? []) ?? [];
}
