import type { Component } from "./accounts.ts";

/** The chart and the API server set this if the values have no strategy. */
export const ROLLING = { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: "25%" } };
export const COMPONENTS: readonly Component[] = ["api", "controller"];

/** Flags of helm that give all components this strategy. */
export function strategyFlags(strategy: string): string[] {
  return COMPONENTS.flatMap((component) => ["--set-json", `${component}.strategy=${strategy}`]);
}
