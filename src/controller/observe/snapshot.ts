import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import type { FailureReason } from "../../crd/reasons.ts";
import type { RolloutWindow } from "../../domain/rollout-window.ts";
import type { Tier } from "../../domain/tier.ts";
import type { AutoscalerView } from "./autoscaler-view.ts";
import type { DeletedScaling } from "./deleted-scalings.ts";
import type { DeploymentView } from "./deployment-view.ts";
import type { PipeScalingView } from "./pipe-scaling-view.ts";
import type { Validation } from "./validation.ts";
import type { WriteRecord } from "./write-record.ts";

/** Why a service's pipes cannot be given any size. */
export interface Obstacle {
  readonly reason: Extract<FailureReason, `Unknown${string}` | "MalformedRecord">;
  readonly message: string;
}

/** All that is known of one service at one moment: what every decision is made from. */
export interface Snapshot {
  readonly serviceId: string;
  readonly nowMs: number;
  /** Where the service's pipes are, if its record says so. */
  readonly namespace: string | undefined;
  readonly tier:
    | { readonly ok: true; readonly value: Tier }
    | { readonly ok: false; readonly obstacle: Obstacle };
  /** Rollouts that restart pods start only within it; absent for any time. */
  readonly rolloutWindow: RolloutWindow | undefined;
  /** The PipeScaling in the service's namespace. */
  readonly scaling: PipeScalingView | undefined;
  /** The PipeScaling that was deleted lately. */
  readonly deleted: DeletedScaling | undefined;
  /** PipeScalings of this name in other namespaces, or of no known service. */
  readonly foreign: readonly PipeScalingView[];
  /** Failures that the status reports; they outlive this process. */
  readonly failures: readonly PipeFailure[];
  /** Pipes that are labelled for this service outside of its namespace, or although it has no readable record. */
  readonly orphans: readonly DeploymentView[];
  /** By name. Only those in the service's namespace: a label elsewhere is not the service's word. */
  readonly pipes: readonly DeploymentView[];
  /** The last write of this process to each pipe, by the uid of the Deployment. */
  readonly writes: ReadonlyMap<string, WriteRecord>;
  /** The last dry run of each pipe, by the uid of the Deployment. */
  readonly validations: ReadonlyMap<string, Validation>;
  /** The scheduler's words, by the name of the pipe whose new pod fits no node. */
  readonly unschedulable: ReadonlyMap<string, string>;
  /** Autoscalers that act on a pipe's container, by the pipe's name. */
  readonly autoscalers: ReadonlyMap<string, readonly AutoscalerView[]>;
}
