import type { Size } from "./size.ts";

/** A size that replaces the requested size until a given time. */
export interface Boost {
  readonly size: Size;
  /** In milliseconds since 1970. NaN if it cannot be parsed; such a boost is never in effect. */
  readonly untilMs: number;
}

/**
 * Returns the boost if it is in effect. Only its end and the present time decide, so no process has to run when it
 * ends.
 */
export function boostAt(boost: Boost | undefined, nowMs: number): Boost | undefined {
  return boost && nowMs < boost.untilMs ? boost : undefined;
}
