import { describeSize, type Size, sameSize, smaller, smallestSizeWith } from "../../domain/size.ts";
import { clipped } from "../../kube/clipped.ts";
import type { Action } from "../actions.ts";
import type { Assessment, Failure } from "../assessment.ts";
import { isCommitUndone } from "../in-place/commit-rules.ts";
import { MAX_ANNOTATED_MESSAGE } from "../names.ts";
import type { LastRollout, OutOfMemory } from "../observe/last-rollout.ts";
import type { Snapshot } from "../observe/observe.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import { hasAppliedSize, type PipeView } from "../observe/pipe-view.ts";
import type { ContainerView, PodView } from "../observe/pod-view.ts";
import { type Allotment, amountsIn, isSize } from "../observe/resources.ts";
import { nameOf } from "../observe/workloads/kinds.ts";
import {
  dueAtMs,
  failureOf,
  isRetryRequested,
  retriedAt,
  retryAtMs,
  unlessAhead,
  unlessOrdinary,
} from "../retry.ts";
import { adopt } from "../rollout/repair.ts";
import type { Sizing } from "./decision.ts";

/*
 * After a resize in place to less memory, a program may run out of memory only later. Two kills in a service within ten
 * minutes return all of its pipes to the previous size. One kill does not, because many programs read their limit only
 * when they start, and the restarted container knows the smaller one.
 *
 * A pod shows only the reason of the last end of a container, and the number of its restarts. The annotation has that
 * number at the time of the commit, and the previous size. So the next controller process decides the same. The status
 * still reports about the requested size.
 */

/** The number of kills that return a service to its previous size. */
const KILLS = 2;

/** Containers that ran out of memory with the requested size. */
interface MemoryShortage {
  readonly outOfMemory: OutOfMemory;
  /** The size that the pipes get instead: the previous one, but at most the maximum of the tier. */
  readonly returned: Size;
  /** The pipe whose annotation must record the shortage before anything else happens; absent if one has the record. */
  readonly unrecorded: PipeView | undefined;
}

/**
 * Returns the shortage for which the service returns to its previous size, until another size or a retry is requested.
 * Returns `undefined` if there is none, or if the previous size has no more memory within the limit of the tier.
 *
 * @param requested at most the maximum of the tier
 * @param mayRecord false if a new shortage cannot be recorded now. Then it does not count, because no pipe gets another
 *     size before that.
 */
export function memoryShortage(
  snapshot: Snapshot,
  scaling: PipeScalingView,
  { requested, maximum }: SizeLimits,
  mayRecord: boolean,
): MemoryShortage | undefined {
  const newShortage = (size: Size) =>
    mayRecord ? detected(snapshot, scaling, { requested: size, maximum }) : undefined;
  const recorded = recordedShortage(snapshot, scaling, requested);
  if (!recorded) return newShortage(requested);
  const returned = smaller(recorded.previous, maximum);
  if (returned.memoryGib <= requested.memoryGib) return undefined;
  // After a boost to a larger size, the previous one may be too small, too.
  const again = newShortage(returned);
  return again
    ? { ...again, outOfMemory: { ...again.outOfMemory, size: requested } }
    : { outOfMemory: recorded, returned, unrecorded: undefined };
}

/** Returns the last record of a shortage with the requested size, unless a retry was requested since then. */
export function recordedShortage(
  snapshot: Snapshot,
  scaling: PipeScalingView,
  requested: Size,
): OutOfMemory | undefined {
  const found = snapshot.pipes
    .flatMap((pipe) => ownRollout(pipe, snapshot)?.outOfMemory ?? [])
    .toSorted((a, b) => b.atMs - a.atMs)
    .find(
      ({ size, alsoSize, atMs }) =>
        [size, alsoSize].some((each) => sameSize(each, requested)) &&
        !isRetryRequested(atMs, { ...snapshot, scaling }),
    );
  if (!found || sameSize(found.size, requested)) return found;
  const { alsoSize: _, ...others } = found;
  return { ...others, size: requested };
}

interface SizeLimits {
  readonly requested: Size;
  /** The maximum of the tier. */
  readonly maximum: Size;
}

/** The container of the pipe in one of its pods. */
interface Seen {
  readonly pod: PodView;
  readonly own: ContainerView;
}

interface Kills {
  readonly pipe: PipeView;
  readonly previous: Size;
  readonly count: number;
  /** The pod of the last kill, and its time, in milliseconds since 1970. */
  readonly pod: string;
  readonly atMs: number;
}

function detected(
  snapshot: Snapshot,
  scaling: PipeScalingView,
  limits: SizeLimits,
): MemoryShortage | undefined {
  const { pipes, nowMs, timeouts } = snapshot;
  const { requested, maximum } = limits;
  const kills = pipes.flatMap((pipe) => killsIn(pipe, snapshot, scaling, limits) ?? []);
  const [newest] = kills.toSorted((a, b) => b.atMs - a.atMs);
  if (!newest || kills.reduce((sum, { count }) => sum + count, 0) < KILLS) return undefined;
  const { pipe, previous, pod } = newest;
  const minutes = timeouts.outOfMemoryMs / 60_000;
  const text = `containers of the service were OOM-killed twice within ${minutes} min of the smaller size, last in the pod ${pod}, so all of its pipes get ${describeSize(previous)}: request more memory`;
  const message = clipped(text, MAX_ANNOTATED_MESSAGE);
  // The time of the last kill: a retry that is requested after it counts, even if the kill is seen only later.
  const atMs = Math.min(nowMs, newest.atMs);
  const outOfMemory = { size: requested, previous, pipe: nameOf(pipe), message, atMs };
  return { outOfMemory, returned: smaller(previous, maximum), unrecorded: pipe };
}

/** The last rollout for this service. A pipe that moved may still have the annotation for its earlier service. */
function ownRollout({ lastRollout }: PipeView, { serviceId }: Snapshot): LastRollout | undefined {
  return lastRollout?.serviceId === serviceId ? lastRollout : undefined;
}

function killsIn(
  pipe: PipeView,
  snapshot: Snapshot,
  scaling: PipeScalingView,
  { requested, maximum }: SizeLimits,
): Kills | undefined {
  const { pods, timeouts, nowMs } = snapshot;
  const { container, isPausedForCommit } = pipe;
  const lastRollout = ownRollout(pipe, snapshot);
  if (!lastRollout || "problem" in container || isPausedForCommit) return undefined;
  const { inPlaceStartedAtMs: sinceMs, startedAtMs } = lastRollout;
  const previous = lastRollout.lastGoodSize && sizeThatHolds(lastRollout.lastGoodSize);
  if (sinceMs === undefined || !hasAppliedSize(pipe)) return undefined;
  if (!previous || smaller(previous, maximum).memoryGib <= requested.memoryGib) return undefined;
  const untilMs = startedAtMs + timeouts.outOfMemoryMs;
  const seen = (pods.get(nameOf(pipe)) ?? []).flatMap((pod): readonly Seen[] => {
    const own = pod.isActive ? pod.containers.find(({ name }) => name === container.name) : undefined;
    return own ? [{ pod, own }] : [];
  });
  const isUndone = isCommitUndone({ ...snapshot, pipe, desired: requested, active: seen });
  if (!sameSize(pipe.size, requested) && !isUndone) return undefined;
  // A pipe that could not return to its previous size still shows kills from before a requested retry. Nothing shows
  // how many of its restarts came after the request, so only the visible kills count.
  const { retryRequestedAtMs = sinceMs } = scaling;
  const isRetried = isRetryRequested(startedAtMs, { ...snapshot, scaling });
  // A clock may have been ahead at the time of the resize. The kills of the last ten minutes count all the same.
  const resizedAtMs = unlessAhead(sinceMs, nowMs, nowMs - timeouts.outOfMemoryMs);
  const fromMs = isRetried ? retryRequestedAtMs : resizedAtMs;
  const ended = seen.filter(({ own }) => own.restartedAtMs > fromMs);
  const killed = ended.filter(({ own }) => own.isOomKilled && own.restartedAtMs <= untilMs);
  const [last] = killed.toSorted((a, b) => b.own.restartedAtMs - a.own.restartedAtMs);
  if (!last) return undefined;
  const since = { ...lastRollout, inPlaceStartedAtMs: resizedAtMs };
  const count = isRetried ? killed.length : Math.max(killed.length, restartsSince(since, seen, killed));
  return { pipe, previous, count, pod: last.pod.metadata.name, atMs: last.own.restartedAtMs };
}

/** All pipes of the service get it, and the admission policies accept an owner's resources only where they were. */
function sizeThatHolds(allotment: Allotment): Size | undefined {
  const { cpuMillicores, memoryGib } = isSize(allotment) ? allotment : amountsIn(allotment);
  return smallestSizeWith(cpuMillicores, memoryGib);
}

/**
 * The restarts of the killed containers since the template followed. They all came before the last kill, so within the
 * ten minutes. The restarts of other containers do not count: they may have come later, or for another reason.
 */
function restartsSince(
  { startedAtMs, inPlaceStartedAtMs = startedAtMs, restarts = 0 }: LastRollout,
  seen: readonly Seen[],
  killed: readonly Seen[],
): number {
  const isLater = ({ pod }: Seen) => pod.createdAtMs > startedAtMs;
  const earlier = seen.filter((each) => !isLater(each));
  const unchanged = restartsOf(earlier.filter(({ own }) => own.restartedAtMs <= inPlaceStartedAtMs));
  // The annotation counts all pods together. The rest of its number belongs to containers that were killed or ended.
  const before = Math.max(0, restarts - unchanged);
  const ofEarlier = restartsOf(killed.filter((each) => !isLater(each)));
  return restartsOf(killed.filter(isLater)) + Math.max(0, ofEarlier - before);
}

function restartsOf(seen: readonly Seen[]): number {
  return seen.reduce((sum, { own }) => sum + own.restartCount, 0);
}

/** Records the shortage in the annotation of one pipe before anything else, so that the next controller sees it. */
export function recordShortage(
  { outOfMemory, unrecorded }: MemoryShortage,
  { assessments }: Sizing,
): readonly Action[] {
  const { subject } = assessments.find(({ pipe }) => pipe === unrecorded) ?? {};
  const { lastRollout } = subject?.pipe ?? {};
  return subject && lastRollout ? adopt(subject, { ...lastRollout, outOfMemory }) : [];
}

/** Reports the pipes with the previous size as pipes without the requested one: one failed, and the others wait. */
export function reportShortage(sizing: Sizing): Sizing {
  const { outOfMemory, assessments } = sizing;
  const named = assessments.find(({ pipe }) => nameOf(pipe) === outOfMemory?.pipe) ?? assessments[0];
  if (!outOfMemory || !named) return sizing;
  const isOver = assessments.every(({ state }) => state === "done");
  const reported = assessments.map((each) => {
    const assessment = withReportedState(each, each === named && isOver ? "failed" : "waiting");
    return each === named ? withFailure(assessment, outOfMemory) : assessment;
  });
  if (!isOver || sizing.waitReason !== "nothing") return { ...sizing, assessments: reported };
  return { ...sizing, assessments: reported, waitReason: "failure", blockedBy: [nameOf(named.pipe)] };
}

/**
 * If the pipe has the previous size, reports another state, and drops `next`, whose actions are already decided.
 *
 * @param whenDone for a pipe whose template has it, too
 */
function withReportedState(assessment: Assessment, whenDone: "failed" | "waiting"): Assessment {
  const { next: _, activity, ...others } = assessment;
  const reported = { ...others, isReturned: true };
  switch (assessment.state) {
    case "done":
      return { ...reported, state: whenDone };
    case "resized":
      return { ...reported, state: "rolling", ...(activity === undefined ? {} : { activity }) };
    default:
      return assessment;
  }
}

function withFailure(assessment: Assessment, outOfMemory: OutOfMemory): Assessment {
  const { subject, pipe, recheckAtMs } = assessment;
  const { atMs, previous } = outOfMemory;
  const { desired } = subject;
  // The maximum of the tier may change after the message was recorded.
  const limit = sameSize(desired, previous) ? "" : `; the tier limits them to ${describeSize(desired)}`;
  const message = `${outOfMemory.message}${limit}`;
  const retryMs = retryAtMs(atMs, Number.POSITIVE_INFINITY, subject);
  const shortage: Failure = retriedAt(retryMs, { reason: "OutOfMemory", message, attempts: 1, atMs });
  const record = subject.writes.get(pipe.metadata.uid, "adopt");
  const unrecorded = unlessOrdinary(failureOf(record, dueAtMs(record, pipe, subject)));
  const failure = assessment.failure ?? unrecorded ?? shortage;
  if (!Number.isFinite(retryMs)) return { ...assessment, failure };
  return { ...assessment, failure, recheckAtMs: Math.min(recheckAtMs ?? retryMs, retryMs) };
}
