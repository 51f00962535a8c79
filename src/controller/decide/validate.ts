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

/** Dry runs of all pipes that wait, so that a refusal is known before the canary. One pipe alone needs none. */
export function validate(assessments: readonly Assessment[], step: Step): Validation {
  const { snapshot, scaling, sizing } = step;
  const waiting = assessments.filter(({ pipe, state }) => state === "waiting" && pipe.replicas > 0);
  if (waiting.length < 2) return VALIDATED;
  const known = (pipe: DeploymentView) => {
    const validation = snapshot.validations.get(pipe.metadata.uid);
    return validation?.key === validationKey(pipe, sizing.desired.size) ? validation : undefined;
  };
  const actions = waiting.flatMap(({ pipe, priorAttempts = 0 }): ValidateAction[] => {
    if ("problem" in pipe.container || known(pipe)) return [];
    const rollout = newRollout(pipe, step, priorAttempts + 1, lastGoodSize(pipe, scaling));
    return [{ type: "validate", pipe, container: pipe.container.name, rollout }];
  });
  return { isComplete: waiting.every(({ pipe }) => known(pipe)?.isPending === false), actions };
}
