import { formatSize } from "../../domain/size.ts";
import type { Action } from "../actions.ts";
import type { Begin, DryRun, Subject, Way } from "../assessment.ts";
import type { LastRollout } from "../observe/last-rollout.ts";
import type { WriteRecord } from "../observe/write-record.ts";
import { dueAtMs, recordOf } from "../retry.ts";
import { newRollout } from "./annotation.ts";

/** Sets the size in the pod template, so that Kubernetes replaces the pods. */
export const ROLLOUT: Way = {
  replacesPods: true,

  problem: () => undefined,

  /**
   * Before a canary, every pipe is tried, so that a rejection is known before anything changes. Later pipes, and a
   * single pipe, are tried only if the new pod in the response must fit a node: if old pods stop first, or if a node was
   * too small in place. A requested retry overrides that, and a rollout in progress has already stopped old pods.
   */
  dryRun(begin) {
    const { subject, isCanaryOfSeveral, isRequested, isRollingOut, attempts, fallback } = begin;
    const isDoubtful = subject.pipe.stopsOldPodsFirst || fallback?.reason === "Infeasible";
    const checksNodes = isDoubtful && !isRollingOut && !isRequested;
    if (subject.pipe.replicas === 0 || (!isCanaryOfSeveral && !checksNodes)) return ACCEPTED;
    return dryRunOf(begin, newRollout(subject, attempts), { isCommit: false, checksNodes });
  },

  begin({ subject, attempts, fallback }: Begin) {
    const rollout = newRollout(subject, attempts, fallback);
    return [{ type: "resize", pipe: subject.pipe, container: subject.container, rollout }];
  },
};

export const ACCEPTED: DryRun = { isAccepted: true };

type Checks = Pick<Extract<Action, { readonly type: "dry-run" }>, "isCommit" | "checksNodes">;

/** Returns the dry run of a write, unless it was made already and nothing that it depends on has changed. */
export function dryRunOf({ subject: about }: Begin, rollout: LastRollout, checks: Checks): DryRun {
  const { pipe, container, nowMs } = about;
  const record = dryRunRecord(about, checks.isCommit);
  if (record?.outcome.type === "done") return ACCEPTED;
  if (dueAtMs(record, about) > nowMs) return { isAccepted: false };
  const subject = subjectOf(about);
  return { isAccepted: false, action: { type: "dry-run", pipe, container, rollout, subject, ...checks } };
}

/** The last dry run of the resize to the desired size. */
export function dryRunRecord(subject: Subject, isCommit: boolean): WriteRecord | undefined {
  return recordOf(subject, isCommit ? "dry-run-commit" : "dry-run", subjectOf(subject));
}

/**
 * A pod template, a size, and everything else that the result depends on. The generation would also change with each
 * annotation, and a webhook can be slower than a writer that repeatedly annotates the Deployment.
 */
function subjectOf({ pipe, container, desired }: Subject): string {
  return [pipe.revision, container, pipe.stopsOldPodsFirst, formatSize(desired)].join("/");
}
