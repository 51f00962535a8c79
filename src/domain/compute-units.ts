import type { Size } from "./size.ts";

const MILLICORES_PER_UNIT = 2000;
const GIB_PER_UNIT = 8;

/**
 * Returns the compute units of a number of replicas: one unit is 2 cores with 8 GiB, so one core is half a unit. For a
 * size with another ratio, the larger of its CPU and memory counts.
 */
export function computeUnits(size: Size, replicas: number): number {
  return Math.max(size.cpuMillicores / MILLICORES_PER_UNIT, size.memoryGib / GIB_PER_UNIT) * replicas;
}
