import { formatSize } from "../../domain/size.ts";
import { elapsedMs } from "../../runtime/elapsed.ts";
import type { Action } from "../actions.ts";
import type { Begin, DryRun, Subject, Way } from "../assessment.ts";
import type { LastRollout } from "../observe/last-rollout.ts";
import type { PodView } from "../observe/pod-view.ts";
import type { WriteRecord } from "../observe/write-record.ts";
import { seesAllPods, seesPods } from "../pods.ts";
import { dueAtMs, recordOf } from "../retry.ts";
import { newRollout } from "./annotation.ts";

/** Sets the size in the pod template, so that Kubernetes replaces the pods. */
export const ROLLOUT: Way = {
  replacesPods: true,

  problem: () => undefined,

  /**
   * Before a canary, every pipe is tried, so that a rejection is known before anything changes. Later pipes, and a
   * single pipe, are tried only if old pods stop first, or if a node was too small in place: a new pod must be accepted
   * and fit a node. A requested retry ignores the nodes, and a rollout in progress has already stopped old pods.
   */
  dryRun(begin) {
    const { subject, isCanaryOfSeveral, isRequested, isRollingOut, attempts, fallback } = begin;
    const { stopsOldPodsFirst, replicas } = subject.pipe;
    const isDoubtful = (stopsOldPodsFirst || fallback?.reason === "Infeasible") && !isRollingOut;
    if (replicas === 0 || (!isCanaryOfSeveral && !isDoubtful)) return ACCEPTED;
    const checksNodes = isDoubtful && !isRequested;
    return dryRunOf(begin, newRollout(subject, attempts), {
      ...{ isCommit: false, checksNodes },
      stopping: checksNodes && stopsOldPodsFirst && !isRoomFound(subject) ? stoppingPods(subject) : undefined,
      triedPod: isDoubtful ? triedPod(subject) : undefined,
    });
  },

  begin({ subject, attempts, fallback }: Begin) {
    const rollout = newRollout(subject, attempts, fallback);
    return [{ type: "resize", pipe: subject.pipe, container: subject.container, rollout }];
  },
};

export const ACCEPTED: DryRun = { isAccepted: true };

type DryRunAction = Extract<Action, { readonly type: "dry-run" }>;
type Checks = Pick<DryRunAction, "isCommit" | "checksNodes" | "stopping" | "triedPod">;

/** The pods that a rollout stops; `undefined` if the controller does not see all of them. */
function stoppingPods(subject: Subject): readonly PodView[] | undefined {
  return seesPods(subject) && seesAllPods(subject) ? subject.pods : undefined;
}

/** The search for room on other nodes, while a resize in place is deferred, found some a moment ago. */
export function isRoomFound(subject: Subject): boolean {
  const { nowMs, timeouts } = subject;
  const record = recordOf(subject, "check-room", dryRunSubject(subject));
  return record?.outcome.type === "done" && elapsedMs(record.lastAtMs, nowMs) < timeouts.roomFoundMs;
}

/** A pod without the size. One with it was accepted already. */
function triedPod({ active }: Subject): PodView | undefined {
  return active.find(({ state, own }) => own && state === "unchanged")?.pod;
}

/** Returns the dry run of a write, unless it was made already and nothing that it depends on has changed. */
export function dryRunOf({ subject: about }: Begin, rollout: LastRollout, checks: Checks): DryRun {
  const { pipe, container, nowMs, timeouts } = about;
  const record = dryRunRecord(about, checks.isCommit);
  if (record?.outcome.type === "done") {
    // Other pods may have taken the room since then.
    const isOutdated = checks.stopping && elapsedMs(record.lastAtMs, nowMs) >= timeouts.roomFoundMs;
    if (!isOutdated) return ACCEPTED;
  } else if (dueAtMs(record, about) > nowMs) return { isAccepted: false };
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
export function dryRunSubject({ pipe, container, desired }: Subject): string {
  return [pipe.revision, container, pipe.stopsOldPodsFirst, formatSize(desired)].join("/");
}
