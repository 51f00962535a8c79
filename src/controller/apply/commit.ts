import { formatSize } from "../../domain/size.ts";
import type { Of } from "../actions.ts";
import type { Fallback, LastRollout } from "../observe/last-rollout.ts";
import { type PipeView, replaceablePods } from "../observe/pipe-view.ts";
import { type Allotment, isSize } from "../observe/resources.ts";
import { KINDS, type PipeKind } from "../observe/workloads/kinds.ts";
import type { WriteError, WrittenAnnotation } from "../observe/write-record.ts";
import { errorOf } from "../retry.ts";
import { applied, inPlaceFailureTo } from "../rollout/annotation.ts";
import type { WholeWorkload } from "./applier.ts";
import { type Applier, attempt, observePipe, patchPipe, type Result, readPipe } from "./applier.ts";
import { sizePatch, templatePatch } from "./requests.ts";
import { DEPLOYMENT } from "./workloads/deployment.ts";
import { STATEFUL_SET } from "./workloads/stateful-set.ts";
import type { CommitKind, Held, NextStep } from "./workloads/workload.ts";
import { fallbackOf } from "./write-error.ts";

/*
 * The commit: the template of a workload follows pods that were resized in place, and no pod is replaced
 * (docs/explanation/in-place.md).
 *
 *     commit            hold, and set the size in the template, in one write
 *     continue-commit   relabel: make what belongs to the workload match the new template
 *                       release, when Kubernetes counts every pod as updated
 *                       restore the old template and release, in one write, after a timeout or a refusal
 *     resume            release, when nothing else is left to do
 *
 * `continue-commit` reads the workload and its ReplicaSets or pods before it decides its step. The hold is visible in
 * the workload, and the old size in its annotation or its ReplicaSet. So after a crash between any two steps, the next
 * leader goes on.
 */

const COMMIT_KINDS: Readonly<Record<PipeKind, CommitKind>> = {
  Deployment: DEPLOYMENT,
  StatefulSet: STATEFUL_SET,
};

/** The spec that begins a commit. */
export function commitPatch({ pipe, container, rollout }: Omit<Of<"commit">, "type">): object {
  return { ...sizePatch({ pipe, container }, rollout.size), ...COMMIT_KINDS[pipe.kind].hold(pipe) };
}

export function beginCommit(applier: Applier, action: Of<"commit">): Promise<WriteError | undefined> {
  const { pipe, rollout } = action;
  const aim = { purpose: "commit", subject: formatSize(rollout.size), attempts: rollout.attempts } as const;
  return attempt(applier, pipe, aim, async () => {
    let isPrepared = false;
    try {
      const { error, managedFields } = await COMMIT_KINDS[pipe.kind].prepare(applier, action);
      if (error) return { error };
      isPrepared = true;
      applier.assertMayWrite();
      return { annotation: await patchPipe(applier, pipe, rollout, commitPatch(action), managedFields) };
    } catch (cause) {
      const error = fallbackOf(cause);
      // A rollout needs the permission for the workload, too, but not the one for its ReplicaSets or pods.
      if (error && !(error.reason === "Forbidden" && isPrepared)) return { error };
      throw cause;
    }
  });
}

export function continueCommit(
  applier: Applier,
  action: Of<"continue-commit">,
): Promise<WriteError | undefined> {
  const { pipe, isOverdue } = action;
  const aim = { purpose: isOverdue ? "resume" : "continue-commit", subject: subjectOf(pipe) } as const;
  return attempt(applier, pipe, aim, async () => {
    const whole = await readPipe<WholeWorkload>(applier, pipe);
    if (!whole) return {};
    const view = KINDS[pipe.kind].toView(whole);
    observePipe(applier, view);
    return view.isPausedForCommit ? step(applier, action, { whole, view }) : {};
  });
}

export function resume(applier: Applier, { pipe }: Of<"resume">): Promise<WriteError | undefined> {
  const aim = { purpose: "resume", subject: subjectOf(pipe) } as const;
  return attempt(applier, pipe, aim, async () => ({ annotation: await release(applier, pipe, undefined) }));
}

/**
 * Makes Kubernetes replace pods that lack the size of their template and cannot be resized in place. The template has
 * the size already, so a commit would change nothing.
 */
export function replacePods(applier: Applier, action: Of<"replace-pods">): Promise<WriteError | undefined> {
  const { pipe } = action;
  const aim = { purpose: "replace-pods", subject: subjectOf(pipe) } as const;
  return attempt(applier, pipe, aim, async () => {
    const whole = await readPipe<WholeWorkload>(applier, pipe);
    return whole ? { error: await COMMIT_KINDS[pipe.kind].replacePods(applier, whole, action) } : {};
  });
}

function subjectOf({ size }: PipeView): string {
  return size ? formatSize(size) : "";
}

async function step(applier: Applier, action: Of<"continue-commit">, held: Held): Promise<Result> {
  const { nextStep } = COMMIT_KINDS[held.view.kind];
  const next = await nextStep(applier, held, action, action.fallback === undefined);
  const result = await runStep(applier, action, held.view, next);
  if (!result.error || result.error.isConflict) return result;
  // The time of the commit is over. Some pods may have their new label, so the next step depends on another read.
  const otherwise = await nextStep(applier, held, action, false);
  return otherwise.type === "wait" ? result : runStep(applier, action, held.view, otherwise);
}

/** @returns an error only if the time of the commit is over, and what belongs to the workload was not written */
async function runStep(
  applier: Applier,
  { container, fallback, isOverdue }: Of<"continue-commit">,
  view: PipeView,
  next: NextStep,
): Promise<Result> {
  applier.assertMayWrite();
  switch (next.type) {
    case "wait":
      return {};
    case "relabel": {
      const write = async () => {
        await next.write();
        return {};
      };
      if (!isOverdue) return write();
      // An overdue attempt is recorded as `resume`, so a separate record shows whether this write was refused.
      const aim = { purpose: "continue-commit", subject: subjectOf(view) } as const;
      return { error: await attempt(applier, view, aim, write) };
    }
    case "release":
      return { annotation: await release(applier, view, next.fallback) };
    case "take-back": {
      const template = templatePatch(container, next.resources);
      return { annotation: await takeBack(applier, view, template, next.old, fallback) };
    }
  }
}

/** @param fallback why the release lets Kubernetes replace pods; absent if it does not */
function release(
  applier: Applier,
  pipe: PipeView,
  fallback: Fallback | undefined,
): Promise<WrittenAnnotation | undefined> {
  const { lastRollout } = pipe;
  const spec = COMMIT_KINDS[pipe.kind].release(pipe);
  return patchPipe(applier, pipe, lastRollout && endedCommit(pipe, lastRollout, fallback), spec);
}

/** Restores the old template and ends the hold. The pods still belong to that template, so Kubernetes replaces none. */
async function takeBack(
  applier: Applier,
  pipe: PipeView,
  template: object,
  old: Allotment,
  fallback: Fallback | undefined,
): Promise<WrittenAnnotation | undefined> {
  const { kind, lastRollout } = pipe;
  const { uid, generation } = pipe.metadata;
  const spec = { ...template, ...COMMIT_KINDS[kind].release(pipe) };
  const rollout = lastRollout && takenBack(pipe, lastRollout, old, fallback);
  const written = await patchPipe(applier, pipe, rollout, spec);
  const message = `the ${kind} controller did not respond, so the template got its old size again: check the kube-controller-manager`;
  const last = errorOf(applier.writes.get(uid, "continue-commit"));
  // A conflict with a ReplicaSet or a pod is no reason to write to the workload again at once.
  const error = {
    ...(last ?? { reason: "WriteFailed", message }),
    isConflict: false,
    isUndone: true,
  } as const;
  applier.writes.failed({ uid, purpose: "commit" }, error, generation);
  return written;
}

/** The annotation without what only shows that a commit is in progress. */
function withoutCommit(rollout: LastRollout): LastRollout {
  const { isCommitting: _, committedRevision: _revision, isUnheld: _unheld, ...rest } = rollout;
  return rest;
}

/** The annotation after a commit. */
function endedCommit(pipe: PipeView, rollout: LastRollout, fallback: Fallback | undefined): LastRollout {
  const { inPlaceStartedAtMs, ...rest } = withoutCommit(rollout);
  if (!fallback) return { ...rest, inPlaceStartedAtMs, cameUp: true };
  const inPlaceFailure = inPlaceFailureTo(rollout.size, fallback, rollout.startedAtMs);
  // Kubernetes replaces the pods, but not those that the owner keeps from rollouts.
  return { ...rest, replicas: replaceablePods(pipe), inPlaceFailure };
}

/** The annotation of a pipe whose template gets what it had before the commit. */
function takenBack(
  { metadata }: PipeView,
  lastRollout: LastRollout,
  old: Allotment,
  fallback: Fallback | undefined,
): LastRollout {
  const rest = withoutCommit(lastRollout);
  const inPlaceFailure = fallback && inPlaceFailureTo(lastRollout.size, fallback, lastRollout.startedAtMs);
  // With this generation, the pipe counts as in a commit until Kubernetes has seen the write (isCommitUnseen).
  const generation = isSize(old) ? metadata.generation + 1 : 0;
  const present = isSize(old) ? { size: old } : applied(old, lastRollout.size);
  return { ...rest, ...present, generation, attempts: 0, cameUp: true, inPlaceFailure };
}
