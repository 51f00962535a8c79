import type { Boost } from "../domain/boost.ts";
import { parseInstant } from "../domain/instant.ts";
import { describeSize, type Size } from "../domain/size.ts";
import type { PipeScalingSpec } from "./pipe-scaling.ts";

/** A size as the PipeScaling and the API write it. */
interface SizeFields {
  readonly replicaCpuMillicores: number;
  readonly replicaMemoryGb: number;
}

export function sizeOf({ replicaCpuMillicores, replicaMemoryGb }: SizeFields): Size {
  return { cpuMillicores: replicaCpuMillicores, memoryGib: replicaMemoryGb };
}

export function sizeFields({ cpuMillicores, memoryGib }: Size): SizeFields {
  return { replicaCpuMillicores: cpuMillicores, replicaMemoryGb: memoryGib };
}

/** The fields in a status, with a summary for people. */
export function describedSize(size: Size): SizeFields & { readonly summary: string } {
  return { ...sizeFields(size), summary: describeSize(size) };
}

/** Returns the size in the fields of a PipeScaling, if any. */
export function sizeIn({ replicaCpuMillicores, replicaMemoryGb }: PipeScalingSpec): Size | undefined {
  if (replicaCpuMillicores === undefined || replicaMemoryGb === undefined) return undefined;
  return sizeOf({ replicaCpuMillicores, replicaMemoryGb });
}

/** Returns the boost in the fields of a PipeScaling, whether or not it has ended. */
export function boostIn({ boost }: PipeScalingSpec): Boost | undefined {
  return boost && { size: sizeOf(boost), untilMs: parseInstant(boost.until) };
}

export function boostFields({ size, untilMs }: Boost): NonNullable<PipeScalingSpec["boost"]> {
  return { ...sizeFields(size), until: new Date(untilMs).toISOString() };
}
