import { formatSize, parseSize, type Size } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";

/** Identifies a rollout and its size in the status: uid of the Deployment, its generation at the rollout, the size. */
export function rolloutId({ metadata, lastRollout, size }: DeploymentView): string | undefined {
  return size && `${metadata.uid}/${lastRollout?.generation ?? 0}/${formatSize(size)}`;
}

/**
 * True if the status reports that the pipe came up with the size that it has. A later failure of its pods does
 * not undo it, because that is health. A size that is applied again has to come up again.
 */
export function hasComeUp(pipe: DeploymentView, { status }: PipeScalingView): boolean {
  const id = rolloutId(pipe);
  return id !== undefined && status.pipes?.cameUp?.[pipe.metadata.name] === id;
}

/**
 * The entry of a pipe that has another size now. It is still the last good size, and it never identifies a rollout
 * again: if another writer takes a size away and gives it back, the pipe has to come up again.
 */
export function withoutRollout(id: string): string {
  const [uid, , ...size] = id.split("/");
  return [uid, NO_ROLLOUT, ...size].join("/");
}

const NO_ROLLOUT = "-";

/** The size with which the status reports that the pipe last came up. */
export function lastSizeThatCameUp(
  { metadata }: DeploymentView,
  { status }: PipeScalingView,
): Size | undefined {
  const [uid, , ...size] = status.pipes?.cameUp?.[metadata.name]?.split("/") ?? [];
  return uid === metadata.uid ? parseSize(size.join("/")) : undefined;
}
