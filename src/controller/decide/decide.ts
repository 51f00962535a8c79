import { serviceLimit } from "../../domain/rollout-plan.ts";
import { ALWAYS_OPEN } from "../../domain/rollout-window.ts";
import { sizeOfCores } from "../../domain/size.ts";
import { desiredSize, type Tier } from "../../domain/tier.ts";
import type { Action } from "../actions.ts";
import type { Assessment } from "../assessment.ts";
import { type CommitStep, commitStep } from "../in-place/commit-rules.ts";
import { partitionSubject } from "../observe/last-rollout.ts";
import type { Snapshot } from "../observe/observe.ts";
import { activeBoost, type PipeScalingView, requestedSize, requestOf } from "../observe/pipe-scaling-view.ts";
import { isFromLaterGeneration, type PipeView } from "../observe/pipe-view.ts";
import { COMMITS, confirmationOf, isOpen, READ_LATER, type WritePurpose } from "../observe/write-record.ts";
import { dueAtMs, lastErrorOf, recordOf } from "../retry.ts";
import { repair } from "../rollout/repair.ts";
import { searchedAtMs } from "../rollout/way.ts";
import { assess } from "./assess.ts";
import { adoptableAtMs, specForAdoption, specForRecreation } from "./created-spec.ts";
import type { DecideOptions, Decision, Sizing } from "./decision.ts";
import { memoryShortage, recordedShortage, recordShortage, reportShortage } from "./out-of-memory.ts";
import { decidePipes } from "./passes.ts";
import { reportSuspension, strandedPipes } from "./suspended.ts";

/**
 * Decides what happens to a service now: a pure function of the snapshot. Each early return is a reason not to resize
 * any pipe; otherwise rules.ts decides about each pipe, and passes.ts about their order.
 */
export function decide(snapshot: Snapshot, options: DecideOptions): Decision {
  const { scaling, pipes, namespace, tier } = snapshot;
  const unfinished = [
    ...readUnknown(snapshot),
    ...abandonedSteps(snapshot).flatMap(({ actions }) => actions),
  ];
  const nothing = (sizing?: Sizing, actions: readonly Action[] = []): Decision => ({
    actions: [...unfinished, ...finishCommits(snapshot), ...actions],
    sizing: sizing && reportSuspension(reportShortage(sizing)),
    waitsForCommit: false,
  });
  // These states may last, and a pipe must not stay without a pod for as long.
  const frozen = (sizing?: Sizing): Decision => {
    const stranded = options.isEnding ? [] : strandedPipes(snapshot, scaling, options.policy);
    return { ...nothing(sizing, stranded.flatMap(repair)), stranded };
  };
  if (namespace === undefined || !tier.ok) return frozen();
  if (!scaling)
    return nothing(undefined, options.isEnding ? [] : create(snapshot, namespace, tier.value, options));
  if (scaling.isBeingDeleted) return frozen();
  const ahead = pipes.filter((pipe) => isFromLaterGeneration(pipe, scaling));
  const mayRecord = !options.isEnding && !scaling.spec.suspend && ahead.length === 0;
  const { sizing, shortage } = sizingOf(snapshot, scaling, tier.value, options, mayRecord);
  if (options.isEnding) return nothing(sizing);
  if (scaling.spec.suspend) return frozen({ ...sizing, waitReason: "suspended" });
  if (ahead.length > 0)
    return nothing({ ...sizing, waitReason: "confirmation" }, confirm(snapshot, scaling, ahead));
  if (shortage?.unrecorded) return nothing(sizing, recordShortage(shortage, sizing));
  const decision = decidePipes({ snapshot, scaling, options, sizing });
  return {
    ...decision,
    actions: [...unfinished, ...decision.actions, ...leavePartitions(snapshot, decision)],
    sizing: decision.sizing && reportShortage(decision.sizing),
  };
}

/** @param mayRecord false if a new shortage cannot be recorded now */
function sizingOf(
  snapshot: Snapshot,
  scaling: PipeScalingView,
  tier: Tier,
  { policy }: DecideOptions,
  mayRecord: boolean,
) {
  const { pipes, nowMs } = snapshot;
  const boost = activeBoost(scaling, nowMs);
  const desired = desiredSize(requestedSize(scaling), tier, boost);
  const limits = { requested: desired.size, maximum: tier.maximumSize };
  const afterBoost = boost && desiredSize(requestedSize(scaling), tier).size;
  const keptAfterBoost = afterBoost && recordedShortage(snapshot, scaling, afterBoost);
  const found = memoryShortage(snapshot, scaling, limits, mayRecord);
  const alsoSize = found?.unrecorded && keptAfterBoost?.size;
  const shortage = found && alsoSize ? { ...found, outOfMemory: { ...found.outOfMemory, alsoSize } } : found;
  const { outOfMemory } = shortage ?? {};
  const { requestId } = requestOf(scaling, boost, desired.size) ?? {};
  const context = {
    ...snapshot,
    scaling,
    policy,
    requestId,
    outOfMemory,
    keptOutOfMemory: outOfMemory ?? keptAfterBoost,
    desired: shortage?.returned ?? desired.size,
  };
  const sizing: Sizing = {
    desired,
    boost,
    requestId,
    outOfMemory,
    waitReason: "nothing",
    blockedBy: [],
    window: ALWAYS_OPEN,
    assessments: pipes.map((pipe) => assess(pipe, snapshot, context)),
    serviceLimit: serviceLimit(pipes.length),
  };
  return { sizing, shortage };
}

/** Returns the action that reads the PipeScaling. If our view of it is right, it also corrects the annotations. */
function confirm(
  snapshot: Snapshot,
  scaling: PipeScalingView,
  pipes: readonly PipeView[],
): readonly Action[] {
  const due = pipes.filter((pipe) => {
    const record = recordOf({ ...snapshot, pipe }, "adopt", confirmationOf(scaling));
    return dueAtMs(record, pipe, snapshot) <= snapshot.nowMs;
  });
  return due.length > 0 ? [{ type: "confirm-generation", scaling, pipes: due }] : [];
}

/** The grace time of a deletion applies if this process saw it, or if the pipes show that the PipeScaling existed. */
function create(
  snapshot: Snapshot,
  namespace: string,
  tier: Tier,
  { policy }: DecideOptions,
): readonly Action[] {
  const { serviceId, pipes, pods, nowMs, recreation } = snapshot;
  if (pipes.length === 0 || creatableAtMs(snapshot) > nowMs) return [];
  const recreated = specForRecreation(serviceId, pipes, pods);
  if (recreation.atMs > nowMs && (recreation.isSeen || recreated)) return [];
  // A pipe that moved in during a commit may get its old template again, so its size is not certain yet.
  if (!recreated && pipes.some(({ isPausedForCommit }) => isPausedForCommit)) return [];
  const maximum = sizeOfCores(policy.maximumCores);
  const spec = recreated ?? specForAdoption(pipes, tier, maximum, recreation.isSeen);
  return [{ type: "create-pipe-scaling", namespace, name: serviceId, spec }];
}

/** When the creation of the PipeScaling may be tried, or tried again, in milliseconds since 1970. */
function creatableAtMs(snapshot: Snapshot): number {
  const { namespace, serviceId, writes } = snapshot;
  const record = writes.get(`${namespace}/${serviceId}`, "create");
  const repeatedAtMs = dueAtMs(record, { metadata: { generation: 0 } }, snapshot);
  return Math.max(repeatedAtMs, adoptableAtMs(snapshot));
}

function readUnknown({ pipes, orphans, writes }: Snapshot): readonly Action[] {
  const isUnknown = ({ metadata }: PipeView) =>
    READ_LATER.some((purpose) => writes.get(metadata.uid, purpose)?.outcome.type === "unknown");
  return [...pipes, ...orphans].filter(isUnknown).map((pipe) => ({ type: "refresh", pipe }));
}

/** Finishes the commits of a service that must not be resized now, because its pipes would otherwise stay paused. */
function finishCommits(snapshot: Snapshot): readonly Action[] {
  // The strategy of a deleted PipeScaling may have been InPlace, and its owner may create it again.
  const context: Snapshot = snapshot.scaling ? snapshot : { ...snapshot, strategy: "InPlace" };
  return snapshot.pipes.flatMap((pipe) => releaseStep(pipe, context).actions);
}

/**
 * Returns the last write of each finished commit, unless its pipe has another action, with which it would conflict. A
 * commit that was undone is tried again within minutes; it leaves this write out, which would be a third one each time.
 */
function leavePartitions(snapshot: Snapshot, { actions, sizing }: Decision): readonly Action[] {
  const isWritten = (pipe: PipeView) => actions.some((each) => "pipe" in each && each.pipe === pipe);
  const isTriedAgain = ({ state, waitsForOwner, subject }: Assessment) =>
    state === "resized" &&
    !waitsForOwner &&
    (lastErrorOf(recordOf(subject, "commit"))?.isUndone || isOpen(recordOf(subject, "resume")));
  const assessments = sizing?.assessments ?? [];
  return assessments
    .filter((each) => !isTriedAgain(each))
    .map(({ pipe }) => pipe)
    .filter((pipe) => pipe.inTurn?.ownsPartition && !pipe.isPausedForCommit && !isWritten(pipe))
    .flatMap((pipe) => releaseStep(pipe, snapshot).actions);
}

type ReleaseStep = Pick<CommitStep, "actions" | "recheckAtMs">;

/** The next write of a commit, or the last one, which leaves the partition to its owner. */
function releaseStep(pipe: PipeView, snapshot: Snapshot): ReleaseStep {
  if (pipe.isPausedForCommit) return commitStep(pipe, snapshot);
  if (!pipe.inTurn?.ownsPartition) return { actions: [], recheckAtMs: Number.POSITIVE_INFINITY };
  const record = recordOf({ ...snapshot, pipe }, "adopt", partitionSubject(pipe.lastRollout));
  const recheckAtMs = dueAtMs(record, pipe, snapshot);
  return { actions: recheckAtMs > snapshot.nowMs ? [] : [{ type: "leave-partition", pipe }], recheckAtMs };
}

/** The next steps for workloads that the controller holds for a commit and that are not pipes of this service. */
function abandonedSteps(snapshot: Snapshot): readonly ReleaseStep[] {
  const { departed, orphans } = snapshot;
  return [
    ...departed.map((pipe) => abandonedStep(pipe, true, snapshot)),
    ...orphans.map((pipe) => abandonedStep(pipe, false, snapshot)),
  ];
}

function abandonedStep(pipe: PipeView, isDeparted: boolean, snapshot: Snapshot): ReleaseStep {
  const { nowMs, namespace, timeouts } = snapshot;
  // Outside the namespace of its service, a departed workload may be a pipe of another installation, like an orphan.
  const isOfService = isDeparted && pipe.metadata.namespace === namespace;
  const resumedAtMs = isOfService ? nowMs : orphanResumedAtMs(pipe, snapshot);
  if (resumedAtMs > nowMs) return { actions: [], recheckAtMs: resumedAtMs };
  // The strategy InPlace protects the pods of pipes, and must not hold those of a workload that is no longer a pipe.
  const step = releaseStep(pipe, { ...snapshot, strategy: "InPlaceOrRollout" });
  if (!isDeparted) return step;
  // No watch shows a workload that left the cache, so it is read again and again during the time of its commit.
  const readAtMs = nowMs + DEPARTED_MS;
  const isOverdue = (pipe.pausedForCommitAtMs ?? 0) + timeouts.commitMs <= nowMs;
  return {
    actions: step.actions.length > 0 ? step.actions : [{ type: "refresh", pipe }],
    recheckAtMs: isOverdue ? Math.max(step.recheckAtMs, readAtMs) : readAtMs,
  };
}

/** When an orphan is resumed, in milliseconds since 1970; infinite if the controller did not pause it. */
function orphanResumedAtMs(
  { metadata, pausedForCommitAtMs }: PipeView,
  { nowMs, timeouts, writes }: Pick<Snapshot, "nowMs" | "timeouts" | "writes">,
): number {
  // Another installation may have paused it, unless this process knows that it did so itself.
  if (COMMITS.some((purpose) => writes.get(metadata.uid, purpose))) return nowMs;
  if (pausedForCommitAtMs === undefined) return Number.POSITIVE_INFINITY;
  return Math.min(pausedForCommitAtMs, nowMs) + timeouts.orphanPauseMs;
}

/** Writes whose next attempt may be missing in the `recheckAtMs` of a decision, like that of a search for room. */
const SILENT: readonly WritePurpose[] = ["adopt", "roll-back", "dry-run", "dry-run-commit", "replace-pods"];

/** A workload that left the caches is read again after this time. */
const DEPARTED_MS = 500;

/**
 * Returns the time at which the decision may change without an event, in milliseconds since 1970: a retry, also a
 * requested one, a timeout, the end of a phase that other pipes wait for, the recreation of a PipeScaling, the end of a
 * pause or of a boost, or the start of a rollout window. Infinite if only an event can change it.
 */
export function recheckAtMs(snapshot: Snapshot, { sizing, stranded = [] }: Decision): number {
  const { nowMs, recreation, scaling, pipes } = snapshot;
  const { waitReason, window, assessments = [] } = sizing ?? {};
  const boost = scaling && activeBoost(scaling, nowMs);
  const isWaitedFor = waitReason === "canary" || waitReason === "service-limit";
  const times = [
    ...assessments.flatMap((each) => timesOf(each, isWaitedFor)),
    ...stranded.flatMap((each) => timesOf(each, false)),
    ...pipes.map((pipe) => releaseStep(pipe, snapshot).recheckAtMs),
    ...abandonedSteps(snapshot).map((step) => step.recheckAtMs),
    ...(boost ? [boost.untilMs] : []),
    // Not every rule knows the time of its next attempt.
    scaling?.retryRequestedAtMs ?? Number.POSITIVE_INFINITY,
    ...(scaling ? [] : [recreation.atMs, creatableAtMs(snapshot)]),
    ...(waitReason === "window" && window && !window.open ? [window.opensAtMs] : []),
  ];
  return Math.min(...times.filter((atMs) => atMs > nowMs));
}

function timesOf(assessment: Assessment, isWaitedFor: boolean): readonly number[] {
  const { pipe, state, subject, phaseEndsAtMs } = assessment;
  const endsAtMs = isWaitedFor || state === "rolling" ? phaseEndsAtMs : undefined;
  const retries = SILENT.map((purpose) =>
    dueAtMs(subject.writes.get(pipe.metadata.uid, purpose), pipe, subject),
  );
  // Until the return of a pod to the size of its template is tried again, its pipe goes on without it.
  const returns = subject.active.map(({ pod }) =>
    dueAtMs(subject.writes.get(pod.metadata.uid, "return-pod"), pod, subject),
  );
  const times = [assessment.recheckAtMs, endsAtMs, searchedAtMs(subject), ...retries, ...returns];
  return times.filter((each) => each !== undefined);
}
