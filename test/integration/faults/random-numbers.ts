import { inject } from "vitest";

/** PIPE_SCALING_TEST_SEED, or else a new one in each run (vitest.config.ts). */
export const seed = inject("seed");

/** Returns a generator of numbers from 0 (inclusive) to 1 (exclusive), determined by the seed (mulberry32). */
export function randomOf(from: number): () => number {
  let state = from;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
