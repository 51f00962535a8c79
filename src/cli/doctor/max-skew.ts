/** The clocks of the machines may differ by this much. */
export const MAX_SKEW_MS = 60_000;
