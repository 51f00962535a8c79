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
 * Dry runs of all pipes that wait, so that a refusal is known before the canary. Later pipes, and one pipe alone, need
 * one only if their rollout stops old pods first: it shows the new pod, for which a node must be large enough.
 */
export function validate(
  assessments: readonly Assessment[],
  { start, isCanary }: Pick<RolloutPlan, "start" | "isCanary">,
  step: Step,
): Validation {
  const { snapshot, scaling, sizing } = step;
  const waiting = assessments.filter(({ pipe, state }) => state === "waiting" && pipe.replicas > 0);
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
 * A person who asks for another try knows more than the nodes tell. A rollout that is on its way has stopped old pods
 * already; if it were kept from another size, nothing would roll it back.
 */
function checksNodes({ pipe, phase, isRetryRequested = false }: Assessment): boolean {
  return pipe.stopsOldPodsFirst && phase !== "rolling-out" && !isRetryRequested;
}
