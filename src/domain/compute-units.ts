import type { Size } from "./size.ts";

const MILLICORES_PER_UNIT = 2000;
const GIB_PER_UNIT = 8;

/**
 * Units of billing for a number of replicas: 2 cores with 8 GiB are one (docs/explanation/sizing.md).
 * One core is half a unit. A size off the ratio counts by its larger half.
 */
export function computeUnits(size: Size, replicas: number): number {
  return Math.max(size.cpuMillicores / MILLICORES_PER_UNIT, size.memoryGib / GIB_PER_UNIT) * replicas;
}
