import { MAX_CAME_UP } from "../../crd/pipe-scaling.ts";
import { sameSize } from "../../domain/size.ts";
import type { Assessment } from "../decide/assessment.ts";
import {
  isProven,
  lastSizeThatCameUp,
  mustComeUpAgain,
  rolloutId,
  whileInPlace,
  withoutPods,
  withoutRollout,
} from "../decide/came-up.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";

/** Returns the entries of `status.pipes.cameUp`, by name of the pipe; `undefined` if there are none. */
export function cameUpEntries(
  assessments: readonly Assessment[],
  scaling: PipeScalingView,
): Record<string, string> | undefined {
  const entries = assessments.flatMap((each): [string, string][] => {
    const entry = entryOf(each, scaling);
    return entry === undefined ? [] : [[each.pipe.metadata.name, entry]];
  });
  return entries.length === 0 ? undefined : Object.fromEntries(entries.slice(0, MAX_CAME_UP));
}

/**
 * An entry stays until the pipe comes up with another size, because until then it is the last good size. During a resize
 * in place, the template does not show which size the pods have.
 */
function entryOf(assessment: Assessment, scaling: PipeScalingView): string | undefined {
  const { pipe, inPlace } = assessment;
  const id = isUp(assessment, scaling) ? rolloutId(pipe) : undefined;
  if (id !== undefined) return id;
  const known = knownEntry(assessment, scaling);
  const isUntried = known === undefined ? pipe.replicas === 0 : known === withoutPods(pipe);
  // The last rollout has the number of replicas.
  if (isUntried) return pipe.lastRollout ? undefined : withoutPods(pipe);
  if (known === undefined) return undefined;
  if (inPlace) return whileInPlace(known);
  return sameSize(lastSizeThatCameUp(pipe, scaling), pipe.size) ? known : withoutRollout(known);
}

function isUp({ pipe, state, inPlace }: Assessment, scaling: PipeScalingView): boolean {
  const isSettled = isProven(pipe, scaling) && !inPlace && !mustComeUpAgain(pipe, scaling);
  return (state === "done" || isSettled) && pipe.replicas > 0;
}

/** The entry of exactly this Deployment. */
function knownEntry({ pipe: { metadata } }: Assessment, { status }: PipeScalingView): string | undefined {
  const known = status.pipes?.cameUp?.[metadata.name];
  return known?.startsWith(`${metadata.uid}/`) ? known : undefined;
}
