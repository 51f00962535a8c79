import { inject } from "vitest";

declare module "vitest" {
  export interface ProvidedContext {
    /** The share of the runs of long property tests that this project makes (vitest.config.ts). */
    shareOfRuns: number;
  }
}

/**
 * The number of runs of a property test that takes long. `npm test` repeats the same runs each time, so it makes only
 * the first ones; `npm run test:slow` makes all of them, with new values.
 */
export function numRuns(all: number): number {
  return Math.ceil(all * inject("shareOfRuns"));
}

/** The cases of a long matrix: `npm test` runs some of them, evenly distributed, and `npm run test:slow` runs all. */
export function sampleOf<T>(cases: readonly T[]): T[] {
  const stride = Math.round(1 / inject("shareOfRuns"));
  return cases.filter((_, index) => index % stride === 0);
}
