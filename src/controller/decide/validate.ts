import type { RolloutPlan } from "../../domain/rollout-plan.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { validationKey } from "../observe/validation.ts";
import type { ValidateAction } from "./actions.ts";
import type { Assessment } from "./assessment.ts";
import { lastGoodSize, newRollout } from "./pipe-actions.ts";
import type { Step } from "./sizing.ts";

interface Validation {
  readonly isComplete: boolean;
  readonly actions: readonly ValidateAction[];
}

export const VALIDATED: Validation = { isComplete: true, actions: [] };

/**
 * Returns dry runs of all waiting pipes, so that a rejection is known before the canary. Later pipes, and a single
 * pipe, need one only if their rollout stops old pods first: the response shows the new pod, which must fit a node.
 */
export function validate(
  assessments: readonly Assessment[],
  { start, isCanary }: Pick<RolloutPlan, "start" | "isCanary">,
  step: Step,
): Validation {
  const { snapshot, scaling, sizing } = step;
  const waiting = assessments.filter(({ pipe, state }) => state === "waiting" && pipe.replicas > 0);
  if (waiting.length === 0) return VALIDATED;
  const isForAll = isCanary && waiting.length > 1;
  const subjects = waiting.filter(
    (each) => isForAll || (checksNodes(each) && start.includes(each.pipe.metadata.name)),
  );
  const known = (pipe: DeploymentView) => {
    const validation = snapshot.validations.get(pipe.metadata.uid);
    return validation?.key === validationKey(pipe, sizing.desired.size) ? validation : undefined;
  };
  const actions = subjects.flatMap((each): ValidateAction[] => {
    const { pipe, priorAttempts = 0 } = each;
    if ("problem" in pipe.container || known(pipe)) return [];
    const rollout = newRollout(pipe, step, priorAttempts + 1, lastGoodSize(pipe, scaling));
    const { name } = pipe.container;
    return [{ type: "validate", checksNodes: checksNodes(each), pipe, container: name, rollout }];
  });
  return { isComplete: subjects.every(({ pipe }) => known(pipe)?.isPending === false), actions };
}

/**
 * A requested retry overrides the check. A rollout in progress has already stopped old pods; if the check blocked
 * another size, nothing would roll the pipe back.
 */
function checksNodes({ pipe, phase, isRetryRequested = false }: Assessment): boolean {
  return pipe.stopsOldPodsFirst && phase !== "rolling-out" && !isRetryRequested;
}
