import type { HoldBack } from "../../domain/rollout-plan.ts";
import type { RolloutWindowState } from "../../domain/rollout-window.ts";
import type { DesiredSize } from "../../domain/tier.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Assessment } from "./assessment.ts";

/** The reason why waiting pipes wait. report/waiting.ts has the sentence for each. */
export type WaitReason =
  | HoldBack
  | "suspended"
  /** The PipeScaling has to be read, because a pipe has a size of a later generation. */
  | "confirmation"
  /** Dry runs of the pipes have begun. */
  | "dry-runs"
  /** Resizes in place that could begin exceed the rate across all services. */
  | "in-place-pace";

/** The desired size of a service, and the state of its pipes. */
export interface Sizing {
  readonly desired: DesiredSize;
  readonly requestId: string | undefined;
  readonly assessments: readonly Assessment[];
  readonly holdBack: WaitReason;
  /** Names of the pipes that the waiting pipes wait for. */
  readonly blockedBy: readonly string[];
  /** True if rollouts that restart pods may start now. */
  readonly window: RolloutWindowState;
  /** Maximum number of concurrent rollouts in this service. */
  readonly serviceLimit: number;
}

/** The inputs for decisions about writes to pipes. */
export interface Step {
  readonly snapshot: Snapshot;
  readonly scaling: PipeScalingView;
  readonly sizing: Sizing;
}
