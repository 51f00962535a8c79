import {
  MAX_CAME_UP,
  MAX_FALLBACKS,
  MAX_MESSAGE_LENGTH,
  type PipeFallback,
  type PipeScalingStatus,
  type ResizeMethod,
} from "../../crd/pipe-scaling.ts";
import { formatSize, type Size, sameSize } from "../../domain/size.ts";
import type { Assessment } from "../decide/assessment.ts";
import { clipped } from "../decide/failure.ts";
import { reportedFallbacks, reportedPipes } from "../decide/fallbacks.ts";
import type { Sizing } from "../decide/sizing.ts";
import { type DeploymentView, isChangedByOwner } from "../observe/deployment-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";

type Methods = Pick<NonNullable<PipeScalingStatus["pipes"]>, "inPlace" | "resizedBy" | "fallbacks">;

/** Computes how each pipe got the desired size, and why pipes got it by a rollout although in place was wanted. */
export function resizeMethods(
  { inPlace }: Pick<Snapshot, "inPlace">,
  { desired, assessments }: Pick<Sizing, "desired" | "assessments">,
  previous: PipeScalingStatus,
): Methods {
  const { size } = desired;
  const known = reportedFallbacks(previous, size);
  const fallbacks = assessments.flatMap(({ pipe }) => fallbackOf(pipe, size, inPlace, known) ?? []);
  const fallenBack = new Set(fallbacks.map(({ pipe }) => pipe));
  const resizedBy = reportedPipes(previous, size)?.resizedBy;
  const methods = assessments
    .filter((each) => each.state === "done" && wasResized(each.pipe, size))
    .map(({ pipe }) => [pipe.metadata.name, methodOf(pipe, fallenBack, resizedBy)] as const);
  return {
    inPlace: methods.filter(([, method]) => method === "InPlace").length || undefined,
    resizedBy: methods.length === 0 ? undefined : Object.fromEntries(methods.slice(0, MAX_CAME_UP)),
    fallbacks: fallbacks.length === 0 ? undefined : fallbacks.slice(0, MAX_FALLBACKS),
  };
}

/** After a restart of the controller, only the status has the reason. */
function fallbackOf(
  pipe: DeploymentView,
  desired: Size,
  inPlace: Snapshot["inPlace"],
  known: readonly PipeFallback[],
): PipeFallback | undefined {
  const { name, uid } = pipe.metadata;
  const view = inPlace.get(uid);
  const fallback = view?.size === formatSize(desired) ? view.fallback : undefined;
  if (!fallback) return wasResized(pipe, desired) ? known.find((each) => each.pipe === name) : undefined;
  const message = clipped(fallback.message, MAX_MESSAGE_LENGTH);
  return { pipe: name, reason: fallback.reason, message };
}

/** A pipe without replicas has the size, but no pod was resized or replaced. */
function wasResized({ lastRollout }: Assessment["pipe"], desired: Size): boolean {
  if (!lastRollout || lastRollout.isRollback || !sameSize(lastRollout.size, desired)) return false;
  return lastRollout.attempts > 0 && lastRollout.replicas > 0;
}

/** If the controller restarts after a commit, only the revision shows that a rollout replaced the pods then. */
function methodOf(
  pipe: DeploymentView,
  fallenBack: ReadonlySet<string>,
  known: Methods["resizedBy"],
): ResizeMethod {
  const { metadata, lastRollout } = pipe;
  if (lastRollout?.inPlaceStartedAtMs === undefined || fallenBack.has(metadata.name)) return "Rollout";
  return known?.[metadata.name] === "InPlace" || !isChangedByOwner(pipe) ? "InPlace" : "Rollout";
}

/** Returns the pipes that were resized in place according to a status, and not according to the previous one. */
export function newInPlace(before: PipeScalingStatus, after: PipeScalingStatus): readonly string[] {
  const known = isSameDesired(before, after) ? before.pipes?.resizedBy : undefined;
  const methods = Object.entries(after.pipes?.resizedBy ?? {});
  return methods.flatMap(([name, method]) =>
    method === "InPlace" && known?.[name] !== method ? [name] : [],
  );
}

/** Returns the fallbacks that a status has and the previous status did not have. */
export function newFallbacks(before: PipeScalingStatus, after: PipeScalingStatus): readonly PipeFallback[] {
  const known = isSameDesired(before, after) ? (before.pipes?.fallbacks ?? []) : [];
  return (after.pipes?.fallbacks ?? []).filter(
    ({ pipe, reason }) => !known.some((each) => each.pipe === pipe && each.reason === reason),
  );
}

function isSameDesired(before: PipeScalingStatus, { desired }: PipeScalingStatus): boolean {
  return before.desired?.summary === desired?.summary;
}
