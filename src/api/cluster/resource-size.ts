import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import type { Size } from "../../domain/size.ts";

/** Returns the size in the fields of a PipeScaling, if any. */
export function sizeOf({ replicaCpuMillicores, replicaMemoryGb }: PipeScalingSpec): Size | undefined {
  if (replicaCpuMillicores === undefined || replicaMemoryGb === undefined) return undefined;
  return { cpuMillicores: replicaCpuMillicores, memoryGib: replicaMemoryGb };
}
