import { formatSize } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";

/**
 * What a pipe that has come up is known by in the status: the Deployment, the generation of it that was given a
 * size, and the size that it has. `undefined` for one that has none.
 */
export function latchOf({ metadata, attempt, size }: DeploymentView): string | undefined {
  return size && `${metadata.uid}/${attempt?.pipeGeneration ?? 0}/${formatSize(size)}`;
}

/**
 * Whether the pipe was reported to have come up with the size that it has (ADR 0013). Whatever becomes of its
 * pods afterwards does not undo it, for that is health; a size that was taken and given again has to come up again.
 */
export function hasComeUp(pipe: DeploymentView, { status }: PipeScalingView): boolean {
  const latch = latchOf(pipe);
  return latch !== undefined && status.pipes?.done?.includes(latch) === true;
}
