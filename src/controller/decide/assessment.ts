import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import type { PipeState, RolloutPhase } from "../../domain/rollout-plan.ts";
import type { Size } from "../../domain/size.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Cause } from "./failure.ts";
import type { Timing } from "./rollout-phase.ts";

/** How one pipe stands to the desired size. */
export interface Assessment {
  readonly pipe: DeploymentView;
  readonly state: PipeState;
  readonly phase: RolloutPhase;
  readonly failure?: PipeFailure;
  /** Why a rollout to a size that is no longer wanted has failed: it is rolled back unless the pipe is resized now. */
  readonly abandoned?: Cause;
  /** Something about the pipe that a person should know, which keeps it from nothing. */
  readonly remark?: string;
  /** The reason why the rollout does not go on, if that is known. */
  readonly obstacle?: string;
  /** How often a waiting pipe was tried at this size before. */
  readonly priorAttempts?: number;
  /** True if a waiting pipe is tried again because a person asked for it. */
  readonly isRetryRequested?: boolean;
  /** When time alone may change this assessment, in milliseconds since 1970. */
  readonly recheckAtMs?: number;
}

export interface AssessContext
  extends Timing,
    Pick<Snapshot, "failures" | "writes" | "unschedulable" | "autoscalers"> {
  readonly desired: Size;
  readonly scaling: PipeScalingView;
}
