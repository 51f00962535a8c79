import type { RolloutPhase } from "../../domain/rollout-plan.ts";
import { formatSize, sameSize } from "../../domain/size.ts";
import { nextStep } from "../in-place/next-step.ts";
import type { InPlaceStep } from "../in-place/steps.ts";
import type { InPlaceView } from "../in-place/view.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { resourcesFor } from "../observe/resources.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Action, InPlaceAction } from "./actions.ts";
import type { AssessContext, Assessment } from "./assessment.ts";
import { hasComeUp, mustComeUpAgain } from "./came-up.ts";
import { failedDeletion } from "./failed-step.ts";
import { isReported } from "./fallbacks.ts";
import { lastGoodSize, newRollout } from "./pipe-actions.ts";
import type { Step } from "./sizing.ts";

type Context = Pick<AssessContext, "desired" | "inPlace">;
type StepContext = Context &
  Pick<AssessContext, "scaling" | "strategy" | "failedSteps" | "nowMs" | "timeouts">;

/** The next step of a resize in place that has begun; `undefined` if there is none. */
export function inPlaceStep(pipe: DeploymentView, context: StepContext): InPlaceStep | "begin" | undefined {
  if ("problem" in pipe.container) return undefined;
  const view = viewOf(pipe, context);
  // After a crash between two steps of a commit, the pods of the pipe must be listed first.
  if (!view) return pipe.isPausedByUs || isUnproven(pipe, context) ? "begin" : undefined;
  if (view.fallback) return pipe.isPausedByUs ? { type: "resume" } : beforeRollout(pipe, view, context);
  if (!view.isReady) return { type: "wait", untilMs: view.nowMs + LISTING_MS };
  const step = nextStep({
    ...{ pipe, container: pipe.container.name, view },
    target: resourcesFor(context.desired, pipe.cpuLimitFollows),
    isTemplateSized: sameSize(pipe.size, context.desired),
    timeouts: context.timeouts,
    failedDeletion: failedDeletion(pipe, context),
  });
  // The status first records that the pipe has to come up again. After a crash, this shows that its pods may differ.
  if (step.type === "resize-pods" && hasComeUp(pipe, context.scaling))
    return { type: "wait", untilMs: view.nowMs + REPORT_MS };
  return step.type === "done" ? undefined : step;
}

/** The status first reports why the pods are replaced. After a crash, nothing else does. */
function beforeRollout(
  { metadata, size }: DeploymentView,
  { fallback, nowMs }: InPlaceView,
  { scaling, desired }: StepContext,
): InPlaceStep | undefined {
  if (!fallback || sameSize(size, desired)) return undefined;
  if (isReported(metadata.name, fallback, scaling.status, desired)) return undefined;
  return { type: "wait", untilMs: nowMs + REPORT_MS };
}

const LISTING_MS = 1000;
const REPORT_MS = 100;

/**
 * True if a resize in place may have ended between its steps, because the controller crashed or because the first size
 * is desired again. Then pods may have another size than the template.
 */
function isUnproven(pipe: DeploymentView, { desired, scaling, strategy }: StepContext): boolean {
  const known = scaling.status.pipes?.cameUp?.[pipe.metadata.name];
  const mayBeInPlace = pipe.lastRollout?.inPlaceStartedAtMs !== undefined || mustComeUpAgain(pipe, scaling);
  return (
    mayBeInPlace &&
    strategy === "InPlaceOrRollout" &&
    sameSize(pipe.size, desired) &&
    pipe.rollout.isComplete &&
    pipe.replicas > 0 &&
    known?.startsWith(`${pipe.metadata.uid}/`) === true &&
    !hasComeUp(pipe, scaling)
  );
}

/** Returns true if this process resizes the pods of the pipe to the desired size. */
export function isInProgress(pipe: DeploymentView, context: Context): boolean {
  const view = viewOf(pipe, context);
  return view !== undefined && !view.fallback;
}

/** The view of a resize to the desired size. */
function viewOf({ metadata }: DeploymentView, { desired, inPlace }: Context): InPlaceView | undefined {
  const view = inPlace.get(metadata.uid);
  return view && view.size === formatSize(desired) ? view : undefined;
}

/** The first actions of the resizes in place that may begin. Pipes that need a rollout are absent. */
export function beginsInPlace(
  starting: readonly Assessment[],
  step: Step,
): ReadonlyMap<Assessment, readonly Action[]> {
  if (step.snapshot.strategy !== "InPlaceOrRollout") return new Map();
  return new Map(
    starting.flatMap((each) => {
      const begin = each.inPlace || each.pipe.replicas === 0 ? undefined : beginInPlace(each, step);
      return begin ? [[each, begin] as const] : [];
    }),
  );
}

/** The first action of a resize in place; `undefined` if the pipe needs a rollout. */
function beginInPlace(assessment: Assessment, step: Step): readonly Action[] | undefined {
  const { pipe, phase } = assessment;
  const context = { desired: step.sizing.desired.size, inPlace: step.snapshot.inPlace };
  if ("problem" in pipe.container) return undefined;
  const isOver = phase === "rolling-out" && (hasComeUp(pipe, step.scaling) || isResumed(pipe));
  if (!pipe.size || !(isOver || BEGINS.includes(phase)) || viewOf(pipe, context)) return undefined;
  return beginAction(assessment, step);
}

/**
 * A Deployment that was scaled, or whose owner rolls something out, is waited for (next-step.ts). A rollout of ours that
 * is in progress restarts the pods anyway.
 */
const BEGINS: readonly RolloutPhase[] = ["settled", "terminating", "updating"];

/** True if the Deployment controller has not seen the end of a commit yet, which is not a rollout. */
function isResumed({ rollout, revision, lastRollout }: DeploymentView): boolean {
  return !rollout.isSeen && lastRollout !== undefined && lastRollout.revision <= revision;
}

function beginAction(assessment: Assessment, step: Step): InPlaceAction[] {
  const { pipe, priorAttempts = 0 } = assessment;
  if ("problem" in pipe.container) return [];
  const begin = { type: "begin-in-place", pipe, container: pipe.container.name } as const;
  const { size } = step.sizing.desired;
  if (pipe.isPausedByUs) return [{ ...begin, size }];
  const rollout = newRollout(pipe, step, priorAttempts + 1, lastGoodSize(pipe, step.scaling));
  return [{ ...begin, size, rollout }];
}

/** Returns the pipes whose commit could start but exceeds the rate. */
export function commitsLater(
  assessments: readonly Assessment[],
  { freeCommits }: { readonly freeCommits: number },
): ReadonlySet<Assessment> {
  const ready = assessments.filter(({ inPlace }) => inPlace !== "begin" && inPlace?.type === "pause");
  return new Set(ready.slice(freeCommits));
}

/** The start of the resize of the pods, in whole milliseconds since 1970, as annotations store it. */
export function startedAtMs(
  { metadata }: DeploymentView,
  { inPlace, nowMs }: Pick<Snapshot, "inPlace" | "nowMs">,
) {
  const view = inPlace.get(metadata.uid);
  return view ? Math.floor(nowMs - (view.nowMs - view.beganAtMs)) : nowMs;
}

/** Returns the actions of one step. */
export function inPlaceActions(
  next: InPlaceStep | "begin",
  assessment: Assessment,
  step: Step,
): readonly Action[] {
  const { pipe, priorAttempts = 0 } = assessment;
  if ("problem" in pipe.container) return [];
  if (next === "begin") return beginAction(assessment, step);
  const { desired } = step.sizing;
  const container = pipe.container.name;
  const size = formatSize(desired.size);
  const resources = resourcesFor(desired.size, pipe.cpuLimitFollows);
  switch (next.type) {
    case "resize-pods":
      return next.pods.map((pod) => ({ type: "resize-pod", pipe, pod, container, resources, size }));
    case "delete-replica-set":
      return [{ type: "delete-replica-set", pipe, replicaSet: next.replicaSet, size }];
    case "pause": {
      const rollout = newRollout(pipe, step, priorAttempts + 1, lastGoodSize(pipe, step.scaling));
      const inPlaceStartedAtMs = startedAtMs(pipe, step.snapshot);
      // No new pod template, so no new revision.
      const commit = { ...rollout, revision: pipe.revision, inPlaceStartedAtMs };
      return [{ type: "resize", isCommit: true, pipe, container, rollout: commit }];
    }
    case "update-replica-set":
      return [
        {
          type: "update-replica-set",
          pipe,
          replicaSet: next.replicaSet,
          container,
          resources: next.resources,
          size,
        },
      ];
    case "read-template":
      return [{ type: "read-template", pipe }];
    case "resume":
      return [resumeAction(pipe, next, size)];
    case "fall-back": {
      const { reason, message, ...old } = next;
      return [{ ...old, pipe, container, size, fallback: { reason, message } }];
    }
    case "wait":
    case "done":
      return [];
  }
}

/** @param size that the pods get in place. A commit of another size says nothing about it. */
export function resumeAction(
  pipe: DeploymentView,
  { fallback }: Extract<InPlaceStep, { readonly type: "resume" }>,
  size: string,
): InPlaceAction {
  const isOfSize = pipe.size && formatSize(pipe.size) === size;
  return { type: "resume", pipe, ...(fallback && isOfSize ? { fallback: { ...fallback, size } } : {}) };
}
