import { formatSize } from "../../domain/size.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { Of } from "../actions.ts";
import type { Begin, DryRun, Subject, Way } from "../assessment.ts";
import type { LastRollout } from "../observe/last-rollout.ts";
import { isHeld, replaceablePods } from "../observe/pipe-view.ts";
import type { PodView } from "../observe/pod-view.ts";
import { isOpen, type WriteRecord } from "../observe/write-record.ts";
import { areOfOneTemplate, seesAllPods, seesPods } from "../pods.ts";
import { dueAtMs, errorOf, isOfWrite, NO_ROOM, recordOf, retryAtMs, retryDelayMs } from "../retry.ts";
import { newRollout } from "./annotation.ts";
import { stepsOf, timeoutMsOf } from "./phase.ts";

/** Sets the size in the pod template, so that Kubernetes replaces the pods. */
export const ROLLOUT: Way = {
  replacesPods: true,

  /**
   * Before a canary, every pipe is tried, so that a rejection is known before anything changes. Later pipes, and a
   * single pipe, are tried only if old pods stop first, or if a node was too small in place: a new pod must be accepted
   * and fit a node. A requested retry ignores the nodes, and a rollout in progress has already stopped old pods.
   */
  dryRun(begin) {
    const { subject, isCanaryOfSeveral, isRequested, isRollingOut, attempts, fallback } = begin;
    const { stopsOldPodsFirst } = subject.pipe;
    const isDoubtful = (stopsOldPodsFirst || fallback?.reason === "Infeasible") && !isRollingOut;
    // Nothing restarts.
    if (replaceablePods(subject.pipe) === 0 || (!isCanaryOfSeveral && !isDoubtful)) return ACCEPTED;
    const checksNodes = isDoubtful && !isRequested;
    const dryRun = dryRunOf(begin, newRollout(subject, attempts), {
      isCommit: false,
      checksNodes,
      isRequested,
      triedPod: isDoubtful ? triedPod(subject) : undefined,
    });
    return dryRun.isAccepted && checksNodes ? searchForRoom(begin) : dryRun;
  },

  begin({ subject, attempts, fallback }: Begin) {
    const rollout = newRollout(subject, attempts, fallback);
    return [{ type: "resize", pipe: subject.pipe, container: subject.container, rollout }];
  },
};

export const ACCEPTED: DryRun = { isAccepted: true };

type DryRunAction = Of<"dry-run">;
type RoomAction = Of<"check-room">;
type Checks = Pick<DryRunAction, "isCommit" | "checksNodes" | "isRequested" | "triedPod">;

/**
 * Searches for room only when the turn of a pipe comes, so that others do not wait for room that it does not use yet.
 * If the controller does not see all of its pods, their room is unknown, and the rollout shows the outcome.
 */
function searchForRoom({ subject, isNext }: Begin): DryRun {
  const { pipe, nowMs } = subject;
  if (!pipe.stopsOldPodsFirst || !isNext || isRoomFound(subject)) return ACCEPTED;
  if (!seesPods(subject) || !seesAllPods(subject)) return ACCEPTED;
  if (searchedAtMs(subject) > nowMs) return { isAccepted: false };
  return { isAccepted: false, action: roomSearch(subject, []) };
}

/** @param fullNodes names of nodes that have no room */
export function roomSearch(about: Subject, fullNodes: readonly string[]): RoomAction {
  const { pipe, container, pods } = about;
  const rollout = newRollout(about, 1);
  const subject = dryRunSubject(about);
  // Only these make room. The owner keeps the others from rollouts.
  const stopping = pods.filter((pod) => !isHeld(pipe, pod));
  const lastsMs = stepsOf(pipe) * timeoutMsOf(pipe, about);
  return { type: "check-room", pipe, container, rollout, subject, stopping, fullNodes, lastsMs };
}

/** The last search for room for the pods of the desired size. */
export function roomRecord(subject: Subject): WriteRecord | undefined {
  return recordOf(subject, "check-room", dryRunSubject(subject));
}

/**
 * Nodes are searched at most once a minute, whatever the result was. A requested retry searches them at once. A search
 * without a result, for example because of a conflict, is repeated like a failed write.
 */
export function searchedAtMs(subject: Subject): number {
  const record = roomRecord(subject);
  if (!record) return subject.nowMs;
  if (isOpen(record)) return Number.POSITIVE_INFINITY;
  if (isOfWrite(errorOf(record)?.reason ?? "")) return dueAtMs(record, subject.pipe, subject);
  const attempts = record.outcome.type === "done" ? 1 : record.attempts;
  return retryAtMs(record.lastAtMs, retryDelayMs(NO_ROOM, attempts, subject.timeouts), subject);
}

/** A search found room a moment ago. */
export function isRoomFound(subject: Subject): boolean {
  const { nowMs, timeouts } = subject;
  const record = roomRecord(subject);
  return record?.outcome.type === "done" && elapsedMs(record.lastAtMs, nowMs) < timeouts.roomFoundMs;
}

/**
 * The running pod on which the size is tried, if there is one. A pod with the size was accepted already. During a
 * rollout of the owner, no pod is tried, because a pod may have been created with other limits, and old pods are
 * stopped already. A pipe that only lacks pods, for example because a quota refuses them, still has those that would be
 * stopped.
 */
function triedPod(subject: Subject): PodView | undefined {
  const { pipe, active } = subject;
  const { isSeen, isComplete } = pipe.rollout;
  if (!isSeen || !(isComplete || areOfOneTemplate(subject))) return undefined;
  return active.find(({ state, own }) => own && state === "unchanged")?.pod;
}

/** Returns the dry run of a write, unless it was made already and nothing that it depends on has changed. */
export function dryRunOf({ subject: about, isNext }: Begin, rollout: LastRollout, checks: Checks): DryRun {
  const { pipe, container, nowMs, timeouts } = about;
  const record = dryRunRecord(about, checks.isCommit);
  if (record?.outcome.type === "done") {
    // A quota may have changed since then. Only the pipe that begins needs a new result: the dry runs of hundreds of
    // pipes take so long that the first results would always be outdated before the last ones arrive.
    const isOutdated = isNext && checks.triedPod && elapsedMs(record.lastAtMs, nowMs) >= timeouts.roomFoundMs;
    if (!isOutdated) return ACCEPTED;
  } else if (dueAtMs(record, pipe, about) > nowMs) return { isAccepted: false };
  const subject = dryRunSubject(about);
  return { isAccepted: false, action: { type: "dry-run", pipe, container, rollout, subject, ...checks } };
}

/** The last dry run of the resize to the desired size. */
export function dryRunRecord(subject: Subject, isCommit: boolean): WriteRecord | undefined {
  return recordOf(subject, isCommit ? "dry-run-commit" : "dry-run", dryRunSubject(subject));
}

/**
 * A pod template, a size, and everything else that the result depends on. The generation would also change with each
 * annotation, and a webhook can be slower than a writer that repeatedly annotates the Deployment.
 */
function dryRunSubject({ pipe, container, desired }: Subject): string {
  return [
    pipe.inTurn?.template ?? pipe.revision,
    container,
    pipe.stopsOldPodsFirst,
    formatSize(desired),
  ].join("/");
}
