import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Action } from "./actions.ts";
import type { Sizing } from "./sizing.ts";

export interface Decision {
  readonly actions: readonly Action[];
  /** Absent if the pipes must not be resized. */
  readonly sizing?: Sizing;
  /** True if the template of a pipe could follow its resized pods, but not now. */
  readonly waitsForCommit?: boolean;
}

export interface DecideOptions {
  readonly policy: RolloutPolicy;
  /** Number of rollouts that may start before the limit across all services is reached. */
  readonly overallFree: number;
  /** Number of commits of resizes in place that may start now, across all services. */
  readonly freeCommits: number;
  /** Number of resizes in place that may begin now, across all services. */
  readonly freeBegins: number;
  /** True if a canary requires dry runs of all waiting pipes, and stopping old pods requires a check of the nodes. */
  readonly validatesFirst: boolean;
}
