/** How pipes are resized. */
export const RESIZE_STRATEGIES = ["InPlaceOrRollout", "InPlace", "Rollout"] as const;

export type ResizeStrategy = (typeof RESIZE_STRATEGIES)[number];
