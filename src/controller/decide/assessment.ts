import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import type { PipeState, RolloutPhase } from "../../domain/rollout-plan.ts";
import type { Size } from "../../domain/size.ts";
import type { InPlaceStep } from "../in-place/steps.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Snapshot } from "../observe/snapshot.ts";
import type { Cause } from "./failure.ts";
import type { Timing } from "./rollout-phase.ts";

/** The state of one pipe relative to the desired size. */
export interface Assessment {
  readonly pipe: DeploymentView;
  readonly state: PipeState;
  readonly phase: RolloutPhase;
  readonly failure?: PipeFailure;
  /** The failure of a rollout to a size that is no longer desired. It is rolled back unless the pipe is resized now. */
  readonly abandoned?: Cause | undefined;
  /** Information for people that does not affect the decision. */
  readonly remark?: string | undefined;
  /** The reason why the rollout makes no progress, if known. */
  readonly obstacle?: string;
  /** Number of previous attempts of a waiting pipe at this size. */
  readonly priorAttempts?: number;
  /** True if a waiting pipe is retried on request. */
  readonly isRetryRequested?: boolean;
  /** The next step of a resize in place that has begun. */
  readonly inPlace?: InPlaceStep | "begin";
  /** Time at which this assessment may change without an event, in milliseconds since 1970. */
  readonly recheckAtMs?: number | undefined;
}

export interface AssessContext
  extends Timing,
    Pick<
      Snapshot,
      | "failures"
      | "writes"
      | "unschedulable"
      | "autoscalers"
      | "strategy"
      | "inPlace"
      | "failedSteps"
      | "timeouts"
    > {
  readonly desired: Size;
  readonly scaling: PipeScalingView;
}
