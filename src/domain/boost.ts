import type { Size } from "./size.ts";

/** A size with an end: until then, it takes the place of the requested size. */
export interface Boost {
  readonly size: Size;
  /** In milliseconds since 1970; NaN, which is never in the future, if it cannot be parsed. */
  readonly untilMs: number;
}

/**
 * Returns the boost if it is in effect. Only its end and the present time decide, so no process has to run when it ends.
 */
export function boostAt(boost: Boost | undefined, nowMs: number): Boost | undefined {
  return boost && nowMs < boost.untilMs ? boost : undefined;
}
