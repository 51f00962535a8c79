/** The writes of a resize in place of two pods, in order. */
export const STEPS = [
  "dry run",
  "resize of the first pod",
  "resize of the second pod",
  "pause",
  "write to the ReplicaSet",
  "resumption",
] as const;

export type Step = (typeof STEPS)[number];
