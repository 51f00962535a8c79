import { formatSize, parseSize, type Size } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";

/** Identifies a rollout in the status by the uid of the Deployment, its generation at the rollout, and the size. */
export function rolloutId({ metadata, lastRollout, size }: DeploymentView): string | undefined {
  return size && `${metadata.uid}/${lastRollout?.generation ?? 0}/${formatSize(size)}`;
}

/**
 * Returns true if the status reports that the pipe came up with its current size. A later failure of its pods does not
 * change that, because it is a matter of health. A size that is applied again has to come up again.
 */
export function hasComeUp(pipe: DeploymentView, { status }: PipeScalingView): boolean {
  const id = rolloutId(pipe);
  return id !== undefined && status.pipes?.cameUp?.[pipe.metadata.name] === id;
}

/**
 * The entry of a pipe that has another size now. It is still the last good size, and it never identifies a rollout
 * again: if another writer takes a size away and gives it back, the pipe has to come up again. A resize in place that
 * did not end stays marked, because a rollout may use its pods again.
 */
export function withoutRollout(id: string): string {
  return isInPlace(id) ? id : replaceRollout(id, "-");
}

/** The entry of a pipe whose pods are being resized in place: its template does not show which size they have. */
export function whileInPlace(id: string): string {
  return replaceRollout(id, "~");
}

function isInPlace(id: string): boolean {
  return id.split("/")[1] === "~";
}

function replaceRollout(id: string, mark: "-" | "~"): string {
  const [uid, , ...size] = id.split("/");
  return [uid, mark, ...size].join("/");
}

/**
 * Returns true if the pods of the pipe may have another size than its template, because a resize in place did not end.
 * A rollout since then does not change that: it may have returned to a ReplicaSet whose pods were resized.
 */
export function mustComeUpAgain({ metadata }: DeploymentView, { status }: PipeScalingView): boolean {
  const known = status.pipes?.cameUp?.[metadata.name];
  return known?.startsWith(`${metadata.uid}/`) === true && isInPlace(known);
}

/**
 * The entry of a pipe without replicas that has not run yet. Kubernetes announces a complete rollout although no pod
 * ran, and nothing in the Deployment shows that later.
 */
export function withoutPods({ metadata }: DeploymentView): string {
  return `${metadata.uid}/0`;
}

/** Returns true if the rollout to the template of the pipe completed with pods, if it has any. */
export function isProven(pipe: DeploymentView, { status }: PipeScalingView): boolean {
  const { rollout, lastRollout, metadata, replicas } = pipe;
  if (!rollout.isComplete || lastRollout || replicas === 0 || rollout.isAvailable) return rollout.isComplete;
  return status.pipes?.cameUp?.[metadata.name] !== withoutPods(pipe);
}

/** Returns the size with which the pipe last came up, according to the status. */
export function lastSizeThatCameUp(
  { metadata }: DeploymentView,
  { status }: PipeScalingView,
): Size | undefined {
  const [uid, , ...size] = status.pipes?.cameUp?.[metadata.name]?.split("/") ?? [];
  return uid === metadata.uid ? parseSize(size.join("/")) : undefined;
}
