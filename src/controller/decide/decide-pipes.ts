import {
  type PlannedPipe,
  planRollout,
  type RolloutLimits,
  type RolloutPlan,
} from "../../domain/rollout-plan.ts";
import { ALWAYS_OPEN, type RolloutWindowState, windowAt } from "../../domain/rollout-window.ts";
import type { Action } from "./actions.ts";
import type { Assessment } from "./assessment.ts";
import { mustComeUpAgain } from "./came-up.ts";
import type { DecideOptions, Decision } from "./decision.ts";
import { finishCommits } from "./finish-commit.ts";
import { beginsInPlace, commitsLater, inPlaceActions } from "./in-place.ts";
import { repair, resize } from "./pipe-actions.ts";
import type { Sizing, Step } from "./sizing.ts";
import { VALIDATED, validate } from "./validate.ts";

/**
 * Decides what happens to the pipes now: the plan chooses pipes, dry runs and the pace of resizes in place hold some of
 * them back, and each of the others gets its next write.
 */
export function decidePipes(step: Step, options: DecideOptions): Required<Decision> {
  const { assessments, serviceLimit } = step.sizing;
  const window = rolloutWindow(step);
  const limits = { ...options, serviceLimit, isWindowOpen: window.open };
  const plan = planWithRollbacks(step, limits);
  const validation = options.validatesFirst ? validate(assessments, plan, step) : VALIDATED;
  // A rollout restarts a pipe, so everything that can be checked without a restart is checked first.
  const chosen = new Set(plan.start);
  const isChosen = ({ pipe }: Assessment) => chosen.has(pipe.metadata.name);
  const mayStart = ({ pipe }: Assessment) => validation.isComplete || pipe.replicas === 0;
  const starting = assessments.filter((each) => isChosen(each) && mayStart(each));
  const begins = beginsInPlace(starting, step);
  const beginLater = new Set([...begins.keys()].slice(options.freeBegins));
  const commitLater = commitsLater(assessments, options);
  const nextWrites = (each: Assessment): readonly Action[] => {
    if (commitLater.has(each) || beginLater.has(each)) return [];
    if (each.inPlace) return inPlaceActions(each.inPlace, each, step);
    if (each.state === "unsizable" && each.pipe.isPausedByUs)
      return finishCommits([each.pipe], step.snapshot);
    if (!isChosen(each)) return repair(each, step);
    return mayStart(each) ? (begins.get(each) ?? resize(each, step)) : [];
  };
  const held = heldBack(plan, { isValidated: validation.isComplete, isPaced: beginLater.size > 0 });
  return {
    actions: [...validation.actions, ...assessments.flatMap(nextWrites)],
    sizing: { ...step.sizing, ...held, window },
    waitsForCommit: commitLater.size > 0,
  };
}

/** The reasons after the plan take precedence, because they hold back what the plan would start. */
function heldBack(
  { holdBack, blockedBy }: RolloutPlan,
  { isValidated, isPaced }: { readonly isValidated: boolean; readonly isPaced: boolean },
): Pick<Sizing, "holdBack" | "blockedBy"> {
  if (isPaced) return { holdBack: "in-place-pace", blockedBy: [] };
  return isValidated ? { holdBack, blockedBy } : { holdBack: "dry-runs", blockedBy: [] };
}

/** The schedule is evaluated only for pipes that it can block. */
function rolloutWindow({ snapshot, scaling, sizing }: Step): RolloutWindowState {
  const { rolloutWindow: window, nowMs } = snapshot;
  const isAnyWaiting = sizing.assessments.some(({ pipe, state }) => state === "waiting" && pipe.replicas > 0);
  if (!isAnyWaiting || !window || nowMs < (scaling.windowIgnoredUntilMs ?? 0)) return ALWAYS_OPEN;
  return windowAt(window, nowMs);
}

/**
 * A rollback that begins now takes the place of a rollout, although the phase of its pipe has timed out. A pipe that can
 * start with the desired size is not rolled back first.
 */
function planWithRollbacks(step: Step, limits: RolloutLimits): RolloutPlan {
  const { assessments } = step.sizing;
  const planned = (each: Assessment) => plannedPipe(each, step);
  const plan = planRollout(assessments.map(planned), limits);
  const isRolledBack = (each: Assessment) =>
    each.abandoned !== undefined &&
    each.phase === "overdue" &&
    !plan.start.includes(each.pipe.metadata.name) &&
    repair(each, step).length > 0;
  const rolledBack = assessments.filter(isRolledBack);
  if (rolledBack.length === 0) return plan;
  const others = assessments.map((each): PlannedPipe => {
    const isMoving = rolledBack.includes(each);
    return { ...planned(each), ...(isMoving ? { state: "rolling", phase: "rolling-back" } : {}) };
  });
  return planRollout(others, limits);
}

/** With the delays between attempts, a failing pipe holds back others for about a minute. */
const MOST_ATTEMPTS_ALONE = 6;

function plannedPipe({ pipe, state, phase, failure }: Assessment, { scaling }: Step): PlannedPipe {
  const { attempts = 0 } = failure ?? {};
  const isUnfinished = mustComeUpAgain(pipe, scaling) && attempts <= MOST_ATTEMPTS_ALONE;
  return { name: pipe.metadata.name, state, phase, replicas: pipe.replicas, isUnfinished };
}
