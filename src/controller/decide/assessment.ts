import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import type { PipeState } from "../../domain/rollout-plan.ts";
import type { Size } from "../../domain/size.ts";
import type { AutoscalerView } from "../observe/autoscaler-view.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";

/** How one pipe stands to the desired size, and since when it is in the way if it is. */
export interface Assessment {
  readonly pipe: DeploymentView;
  readonly state: PipeState;
  readonly failure?: PipeFailure;
  /** What a person should know of the pipe beside. */
  readonly remark?: string;
  /** What a rollout waits for, where that is known. */
  readonly obstacle?: string;
  /** How often a waiting pipe was tried at this size before. */
  readonly priorAttempts?: number;
  /** When time alone may change this assessment. */
  readonly recheckAtMs?: number;
}

export interface AssessContext {
  readonly desired: Size;
  readonly scaling: PipeScalingView;
  /** Failures known from before, newest first. */
  readonly failures: readonly PipeFailure[];
  /** The scheduler's words, by the name of the pipe whose new pod fits no node. */
  readonly unschedulable: ReadonlyMap<string, string>;
  /** What else acts on the size of a pipe's container, by the pipe's name. */
  readonly autoscalers: ReadonlyMap<string, readonly AutoscalerView[]>;
  readonly nowMs: number;
  readonly rolloutTimeoutMs: number;
}
