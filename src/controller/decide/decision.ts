import type { Boost } from "../../domain/boost.ts";
import type { PlanWaitReason } from "../../domain/rollout-plan.ts";
import type { RolloutWindowState } from "../../domain/rollout-window.ts";
import type { DesiredSize } from "../../domain/tier.ts";
import type { RolloutPolicy } from "../../settings/rollout-policy.ts";
import type { Action } from "../actions.ts";
import type { Assessment } from "../assessment.ts";
import type { OutOfMemory } from "../observe/last-rollout.ts";

/** The reason why waiting pipes wait. report/conditions.ts has the sentence for each. */
export type WaitReason =
  | PlanWaitReason
  | "suspended"
  /** The PipeScaling has to be read, because a pipe has a size of a later generation. */
  | "confirmation"
  /** Not all dry runs of the pipes have been accepted yet. */
  | "dry-runs";

/** The desired size of a service, and the state of its pipes. */
export interface Sizing {
  readonly desired: DesiredSize;
  /** The boost in effect, if any. */
  readonly boost: Boost | undefined;
  readonly requestId: string | undefined;
  /** Present if the desired size has too little memory: the pipes get the previous size, limited by the tier. */
  readonly outOfMemory: OutOfMemory | undefined;
  readonly assessments: readonly Assessment[];
  readonly waitReason: WaitReason;
  /** Names of the pipes that the waiting pipes wait for. */
  readonly blockedBy: readonly string[];
  /** The rollout window: open until a time, or closed until a time. It counts as always open if no pipe waits. */
  readonly window: RolloutWindowState;
  /** Maximum number of concurrent rollouts and resizes in this service. */
  readonly serviceLimit: number;
}

export interface Decision {
  readonly actions: readonly Action[];
  /** Absent without a readable record, a tier or a PipeScaling, or while the PipeScaling is being deleted. */
  readonly sizing?: Sizing | undefined;
  /** The pipes that may be without a pod, although the service must not be resized now. */
  readonly stranded?: readonly Assessment[];
  /** True if a commit waits for the limit across all services. */
  readonly waitsForCommit: boolean;
}

export interface DecideOptions {
  readonly policy: RolloutPolicy;
  /** Number of rollouts that may start before the limit across all services is reached. */
  readonly overallFree: number;
  /** Number of templates that may begin to follow their pods now, across all services. */
  readonly commitsFree: number;
  /** False for a preview: what a dry run would show is not known. */
  readonly makesDryRuns: boolean;
  /** The process is ending: it only finishes commits, which otherwise leave Deployments paused and pods held. */
  readonly isEnding: boolean;
}
