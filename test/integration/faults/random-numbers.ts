import { randomInt } from "node:crypto";
import { environment } from "@pipe-scaling/local-cluster/environment";

/** The seed of this run: PIPE_SCALING_TEST_SEED repeats a failed run; otherwise it is random. */
export const seed = Number(environment["PIPE_SCALING_TEST_SEED"] ?? randomInt(2 ** 31));

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
