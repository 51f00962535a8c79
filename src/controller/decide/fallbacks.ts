import { MAX_FALLBACKS, type PipeFallback, type PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import type { Size } from "../../domain/size.ts";
import type { Fallback } from "../in-place/view.ts";

/** Returns why pipes get the size by a rollout instead of in place, as the status reports it. */
export function reportedFallbacks(status: PipeScalingStatus, size: Size): readonly PipeFallback[] {
  return reportedPipes(status, size)?.fallbacks ?? [];
}

/** Returns what the status reports of the pipes; `undefined` if it was about another size. */
export function reportedPipes(
  { desired, pipes }: PipeScalingStatus,
  { cpuMillicores, memoryGib }: Size,
): PipeScalingStatus["pipes"] {
  const isDesired = desired?.replicaCpuMillicores === cpuMillicores && desired.replicaMemoryGb === memoryGib;
  return isDesired ? pipes : undefined;
}

/** Returns true if the status reports the fallback of a pipe, or has no room for it. */
export function isReported(
  pipe: string,
  { reason }: Fallback,
  status: PipeScalingStatus,
  desired: Size,
): boolean {
  const known = reportedFallbacks(status, desired);
  return known.length >= MAX_FALLBACKS || known.some((each) => each.pipe === pipe && each.reason === reason);
}
