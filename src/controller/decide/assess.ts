import { sameSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { AssessContext, Assessment } from "./assessment.ts";
import { failureOf, type Reason } from "./failure.ts";
import { contest, contestWith } from "./field-conflict.ts";
import { hasComeUp } from "./latch.ts";
import { CONTAINER_UNCLEAR, pastFailure, retryAt } from "./past-failure.ts";
import { begunAt, rolloutFailure, rolloutRecheckAt } from "./rollout-failure.ts";

export function assess(pipe: DeploymentView, context: AssessContext): Assessment {
  const { container } = pipe;
  if ("problem" in container) {
    return unsizable(pipe, { reason: CONTAINER_UNCLEAR, message: container.problem }, context);
  }
  const autoscalers = context.autoscalers.get(pipe.metadata.name) ?? [];
  const vertical = autoscalers.find(({ kind }) => kind === "VerticalPodAutoscaler");
  if (vertical) return unsizable(pipe, contestWith(vertical), context);
  const assessment = sameSize(pipe.size, context.desired)
    ? assessGiven(pipe, context)
    : assessWaiting(pipe, context);
  const [horizontal] = autoscalers;
  if (!horizontal) return assessment;
  const name = JSON.stringify(horizontal.metadata.name);
  const remark = `The replicas of ${pipe.metadata.name} are set by the HorizontalPodAutoscaler ${name}, which measures by its requests: another size may change how many there are.`;
  return { ...assessment, remark };
}

function unsizable(pipe: DeploymentView, reason: Reason, context: AssessContext): Assessment {
  return { pipe, state: "unsizable", failure: failureOf(pipe, reason, 1, context.nowMs, context) };
}

/** A pipe whose template has another size than the desired one. */
function assessWaiting(pipe: DeploymentView, context: AssessContext): Assessment {
  const failure = contest(pipe, context) ?? pastFailure(pipe, context);
  if (!failure) return { pipe, state: "waiting" };
  const recheckAtMs = retryAt(pipe, failure, context);
  if (recheckAtMs <= context.nowMs) return { pipe, state: "waiting", priorAttempts: failure.attempts };
  return { pipe, state: "failed", failure, ...(Number.isFinite(recheckAtMs) ? { recheckAtMs } : {}) };
}

/** A pipe whose template has the desired size. */
function assessGiven(pipe: DeploymentView, context: AssessContext): Assessment {
  const { attempt, rollout, isPaused } = pipe;
  const { scaling, desired, nowMs } = context;
  if (rollout.isComplete || hasComeUp(pipe, scaling)) return { pipe, state: "done" };
  if (isPaused) return { pipe, state: "paused" };
  const begunAtMs = begunAt(pipe, context);
  if (begunAtMs === undefined) return { pipe, state: "rolling" };
  const failed = rolloutFailure(pipe, begunAtMs, context);
  if (failed) {
    const attempts = attempt && sameSize(attempt.size, desired) ? attempt.attempts : 1;
    return { pipe, state: "failed", failure: failureOf(pipe, failed, attempts, nowMs, context) };
  }
  const obstacle = context.unschedulable.get(pipe.metadata.name);
  const recheckAtMs = rolloutRecheckAt(pipe, begunAtMs, context);
  return { pipe, state: "rolling", recheckAtMs, ...(obstacle === undefined ? {} : { obstacle }) };
}
