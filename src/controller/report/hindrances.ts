import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import { describeSize } from "../../domain/size.ts";
import { parseTime } from "../../kube/time.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Assessment } from "../assessment.ts";
import type { Sizing } from "../decide/decision.ts";
import { notResized } from "../in-place/wait.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";

/*
 * A pipe that cannot be resized in place, and whose pods must not be replaced, waits. After the time that a rollout may
 * take, it is reported as failed. That changes only the report, so the times in the status are enough for it.
 */

interface Reported {
  readonly scaling: Pick<PipeScalingView, "status">;
  readonly sizing: Sizing;
  readonly policy: Pick<RolloutPolicy, "rolloutTimeoutMs">;
  readonly nowMs: number;
}

/** The pipes that have waited for too long, with a failure. */
export function overdueHindrances(reported: Reported): readonly Assessment[] {
  const { sizing, policy, nowMs } = reported;
  const failAtMs = hindrancesFailAtMs(reported);
  if (failAtMs > nowMs) return [];
  return sizing.assessments.flatMap((each) => {
    if (!each.hindrance || each.failure) return [];
    return [{ ...each, failure: notResized(each.hindrance, failAtMs - policy.rolloutTimeoutMs) }];
  });
}

/** When pipes that wait count as failed, in milliseconds since 1970; infinite if none waits. */
export function hindrancesFailAtMs({ scaling, sizing, policy, nowMs }: Reported): number {
  const { assessments, desired } = sizing;
  if (assessments.every(({ hindrance }) => !hindrance)) return Number.POSITIVE_INFINITY;
  return sinceMs(scaling.status, describeSize(desired.size), nowMs) + policy.rolloutTimeoutMs;
}

/** Since when the service is not ready with this size. */
function sinceMs(status: PipeScalingView["status"], size: string, nowMs: number): number {
  const ready = status.conditions?.find(({ type }) => type === "Ready");
  if (ready?.status !== "False" || status.desired?.summary !== size) return nowMs;
  const { lastTransitionTime } = ready;
  return Math.min(nowMs, Math.max(parseTime(lastTransitionTime), parseTime(status.propagation?.startedAt)));
}

export function isOfHindrance({ reason }: Pick<PipeFailure, "reason">): boolean {
  return reason === "NotResizedInPlace";
}
