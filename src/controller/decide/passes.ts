import {
  type PlannedPipe,
  planRollout,
  type RolloutLimits,
  type RolloutPlan,
} from "../../domain/rollout-plan.ts";
import { ALWAYS_OPEN, rolloutWindowAt } from "../../domain/rollout-window.ts";
import { sameSize } from "../../domain/size.ts";
import type { Action } from "../actions.ts";
import type { Assessment, Begin, Way } from "../assessment.ts";
import { isHindered, isOutOfMemory } from "../in-place/fall-back.ts";
import type { Snapshot } from "../observe/observe.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { PipeView } from "../observe/pipe-view.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import { NO_ROOM } from "../retry.ts";
import { repair, rollsBackSoon } from "../rollout/repair.ts";
import { isRoomFound } from "../rollout/way.ts";
import type { DecideOptions, Decision, Sizing } from "./decision.ts";

/** The decisions of the passes over the pipes of a service so far. */
interface Draft {
  readonly snapshot: Snapshot;
  readonly scaling: PipeScalingView;
  readonly options: DecideOptions;
  readonly sizing: Sizing;
  /** The pipes with replicas that wait and can be resized. */
  readonly waiting: readonly Assessment[];
  /** The pipes to begin with now. */
  readonly plan: RolloutPlan;
  readonly actions: readonly Action[];
  readonly waitsForCommit: boolean;
}

type Pass = (draft: Draft) => Draft;

/** In this order, each of them over all pipes of the service. */
const PASSES: readonly Pass[] = [
  // A schedule holds back restarts, or everything.
  openWindow,
  // One pipe first, then as many as the limits allow.
  choose,
  // A dry run shows problems before a restart.
  tryOut,
  // Each chosen pipe gets its first write.
  begin,
  // Each pipe in progress gets its next one.
  goOn,
  // The templates of resized pods follow, a few at a time.
  follow,
  // The others get a rollback, the deletion of a stuck pod, or a record.
  mend,
];

export function decidePipes(
  given: Pick<Draft, "snapshot" | "scaling" | "options" | "sizing">,
): Required<Omit<Decision, "stranded">> {
  const waiting = given.sizing.assessments.filter(
    (each) => each.state === "waiting" && each.pipe.replicas > 0 && isPlanned(each),
  );
  const first: Draft = { ...given, waiting, plan: NO_PLAN, actions: [], waitsForCommit: false };
  const { actions, sizing, waitsForCommit } = PASSES.reduce((draft, pass) => pass(draft), first);
  return { actions, sizing, waitsForCommit };
}

const NO_PLAN: RolloutPlan = { start: [], waitReason: "nothing", isCanary: false, blockedBy: [] };

/** The schedule is evaluated only if a pipe waits. */
function openWindow(draft: Draft): Draft {
  const { snapshot, scaling, sizing, waiting } = draft;
  const { rolloutWindow, nowMs } = snapshot;
  const window =
    waiting.length === 0 ? ALWAYS_OPEN : rolloutWindowAt(rolloutWindow, nowMs, scaling.windowIgnoredUntilMs);
  return { ...draft, sizing: { ...sizing, window } };
}

/**
 * A rollback that begins now counts against the limits, although the phase of its pipe has timed out. A pipe that can
 * begin with the desired size is not rolled back first.
 */
function choose(draft: Draft): Draft {
  const { options, sizing } = draft;
  const { serviceLimit, window } = sizing;
  const assessments = sizing.assessments.filter(isPlanned);
  // A return to more memory in place is urgent and restarts nothing, so it waits neither for a canary nor for a window.
  const urgent = sizing.outOfMemory ? draft.waiting.filter(isInPlace) : [];
  const isUrgent = (each: Assessment) => urgent.includes(each);
  // Room is reserved for a waiting pipe that found it. If that pipe waited for one without room, neither would begin.
  const hasRoom = draft.waiting.some(({ subject }) => isRoomFound(subject));
  const held = window.open ? undefined : draft.snapshot.rolloutWindow?.appliesTo;
  const limits: RolloutLimits = { overallFree: options.overallFree, serviceLimit, held };
  // The rollouts of the others begin when an urgent pipe has proven the size.
  const given = assessments.map((each): PlannedPipe => {
    if (isUrgent(each)) return { ...plannedPipe(each), state: "rolling", phase: "resizing" };
    return hasRoom && each.failure?.reason === NO_ROOM
      ? { ...plannedPipe(each), state: "retrying" }
      : plannedPipe(each);
  });
  const { start } = planRollout(given, limits);
  const planned = assessments.map((each, at): PlannedPipe => {
    const isOver = each.abandoned !== undefined && each.phase === "overdue" && !isUrgent(each);
    const isDue = repair(each).length > 0 || rollsBackSoon(each);
    const isRolledBack = isOver && !start.includes(nameOf(each.pipe)) && isDue;
    return { ...(given[at] ?? plannedPipe(each)), ...(isRolledBack ? ROLLING_BACK : {}) };
  });
  const plan = planRollout(planned, limits);
  const { waitReason, blockedBy } = plan;
  const chosen = { ...plan, start: [...plan.start, ...urgent.map(({ pipe }) => nameOf(pipe))] };
  // The time at which the window opens is more useful for people than a write that failed before.
  const told = waitReason === "window" ? sizing.assessments.map(withoutPriorFailure) : sizing.assessments;
  return { ...draft, plan: chosen, sizing: { ...sizing, assessments: told, waitReason, blockedBy } };
}

function withoutPriorFailure(each: Assessment): Assessment {
  return each.state === "waiting" ? { ...each, failure: undefined } : each;
}

const ROLLING_BACK = { state: "rolling", phase: "rolling-back" } as const;

/**
 * A pipe that would be resized in place and has no pods yet has no first write, so no other pipe waits for it: the pods
 * of a StatefulSet may be terminating for as long as their node is lost.
 */
function isPlanned(each: Assessment): boolean {
  const { pipe, subject } = each;
  return !isHindered(each) && !(isInPlace(each) && pipe.replicas > 0 && subject.active.length === 0);
}

function isInPlace({ next }: Assessment): boolean {
  return next?.type === "begin" && !next.way.replacesPods;
}

function plannedPipe({ subject, pipe, state, phase, proof, next }: Assessment): PlannedPipe {
  const beginning = next?.type === "begin" ? next : undefined;
  const { fallback } = beginning ?? {};
  return {
    name: nameOf(pipe),
    state,
    phase,
    proof,
    replicas: pipe.replicas,
    isAvailable: pipe.rollout.isAvailable,
    // Either the template has the size before its pods, or the pipe failed in place, as a canary may, and stays first.
    isUnfinished: sameSize(pipe.size, subject.desired) || (fallback !== undefined && "atMs" in fallback),
    replacesPods: beginning?.way.replacesPods ?? true,
    ignoresWindow: isOutOfMemory(subject),
  };
}

/**
 * Before the canary, all dry runs must be accepted. Later, each pipe needs only its own, so a pipe for which no node
 * has room does not block the others.
 */
function tryOut(draft: Draft): Draft {
  const { plan, options, sizing, waiting } = draft;
  if (!options.makesDryRuns) return draft;
  const tried = waiting.filter((each) => isCanaryOfSeveral(draft) || isChosen(each, plan));
  const results = tried
    .flatMap((each) => beginsOf(each, draft))
    .map(({ way, ...each }) => ({ ...way.dryRun(each), name: nameOf(each.subject.pipe) }));
  const actions = [...draft.actions, ...results.flatMap(({ action }) => action ?? [])];
  const open = results.flatMap(({ isAccepted, name }) => (isAccepted ? [] : [name]));
  if (open.length === 0) return { ...draft, actions };
  const heldBack = isCanaryOfSeveral(draft) ? waiting.map(({ pipe }) => nameOf(pipe)) : open;
  const start = plan.start.filter((name) => !heldBack.includes(name));
  const held = { waitReason: "dry-runs", blockedBy: [] } as const;
  return { ...draft, actions, plan: { ...plan, start }, sizing: { ...sizing, ...held } };
}

function begin(draft: Draft): Draft {
  const starting = draft.sizing.assessments.filter((each) => isChosen(each, draft.plan));
  const begins = starting.flatMap((each) => beginsOf(each, draft));
  return { ...draft, actions: [...draft.actions, ...begins.flatMap(({ way, ...each }) => way.begin(each))] };
}

function goOn(draft: Draft): Draft {
  const { actions, sizing } = draft;
  const more = sizing.assessments.flatMap(({ next }) => (next?.type === "continue" ? next.actions : []));
  return { ...draft, actions: [...actions, ...more] };
}

function follow(draft: Draft): Draft {
  const { options, sizing } = draft;
  const ready = sizing.assessments.flatMap(({ next }) => (next?.type === "commit" ? next.action : []));
  const actions = [...draft.actions, ...ready.slice(0, options.commitsFree)];
  return { ...draft, actions, waitsForCommit: ready.length > options.commitsFree };
}

/** A pipe that was chosen, and waits before its first write, must not stay without a pod meanwhile. */
function mend(draft: Draft): Draft {
  const { actions, sizing, plan } = draft;
  const isWritten = (pipe: PipeView) => actions.some((each) => "pipe" in each && each.pipe === pipe);
  const others = sizing.assessments.filter(
    (each) => !(isChosen(each, plan) && isWritten(each.pipe)) && (each.next?.type ?? "begin") === "begin",
  );
  return { ...draft, actions: [...actions, ...others.flatMap(repair)] };
}

function isChosen({ pipe, state }: Assessment, { start }: RolloutPlan): boolean {
  return state === "waiting" && start.includes(nameOf(pipe));
}

function isCanaryOfSeveral({ plan, waiting }: Draft): boolean {
  return plan.isCanary && waiting.length > 1;
}

/** @returns an empty array for a pipe that does not wait to begin */
function beginsOf(assessment: Assessment, draft: Draft): readonly (Begin & { readonly way: Way })[] {
  const { subject, next, phase } = assessment;
  if (next?.type !== "begin") return [];
  const isRollingOut = phase === "rolling-out";
  const isNext = isChosen(assessment, draft.plan);
  return [{ ...next, subject, isNext, isRollingOut, isCanaryOfSeveral: isCanaryOfSeveral(draft) }];
}
