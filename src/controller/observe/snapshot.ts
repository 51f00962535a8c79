import type { PipeFailure } from "../../crd/pipe-scaling.ts";
import type { FailureReason } from "../../crd/reasons.ts";
import type { ResizeStrategy } from "../../domain/resize-strategy.ts";
import type { RolloutWindow } from "../../domain/rollout-window.ts";
import type { Tier } from "../../domain/tier.ts";
import type { FailedStep } from "../in-place/failed-step.ts";
import type { InPlaceView } from "../in-place/view.ts";
import type { Timeouts } from "../timeouts.ts";
import type { AutoscalerView } from "./autoscaler-view.ts";
import type { DeletedScaling } from "./deleted-scalings.ts";
import type { DeploymentView } from "./deployment-view.ts";
import type { PipeScalingView } from "./pipe-scaling-view.ts";
import type { Validation } from "./validation.ts";
import type { WriteRecord } from "./write-record.ts";

/** The reason why no pipe of a service can be resized. */
export interface Obstacle {
  readonly reason: Extract<FailureReason, `Unknown${string}` | "MalformedRecord">;
  readonly message: string;
}

/** The state of one service at one moment: the only input of decisions. */
export interface Snapshot {
  readonly serviceId: string;
  readonly nowMs: number;
  readonly timeouts: Timeouts;
  /** Namespace of the service's pipes, if its record is readable. */
  readonly namespace: string | undefined;
  readonly tier:
    | { readonly ok: true; readonly value: Tier }
    | { readonly ok: false; readonly obstacle: Obstacle };
  /** Rollouts that restart pods start only within it; absent if they may start at any time. */
  readonly rolloutWindow: RolloutWindow | undefined;
  /** The PipeScaling in the service's namespace. */
  readonly scaling: PipeScalingView | undefined;
  /** The PipeScaling that was recently deleted. */
  readonly deleted: DeletedScaling | undefined;
  /** A deleted PipeScaling is not created again before this time, in milliseconds since 1970. */
  readonly recreateAtMs: number;
  /** PipeScalings with this name in other namespaces, or of an unknown service. */
  readonly foreign: readonly PipeScalingView[];
  /** Failures in the status, which survive a restart of this process. */
  readonly failures: readonly PipeFailure[];
  /** Pipes with the label of this service outside its namespace, or while it has no readable record. */
  readonly orphans: readonly DeploymentView[];
  /** Sorted by name. Only pipes in the service's namespace, because labels in other namespaces are not trusted. */
  readonly pipes: readonly DeploymentView[];
  /** The last write of this process to each pipe, by uid of the Deployment. */
  readonly writes: ReadonlyMap<string, WriteRecord>;
  /** The last dry run of each pipe, by uid of the Deployment. */
  readonly validations: ReadonlyMap<string, Validation>;
  /** How pipes are resized: in place if possible, or always by a rollout. */
  readonly strategy: ResizeStrategy;
  /** Resizes in place that this process tries, by uid of the Deployment. */
  readonly inPlace: ReadonlyMap<string, InPlaceView>;
  /** Failed writes of resizes in place that are repeated, by uid of the Deployment. */
  readonly failedSteps: ReadonlyMap<string, FailedStep>;
  /** UIDs of the Deployments for which such a write is in flight. */
  readonly stepsInFlight: ReadonlySet<string>;
  /** Messages of the scheduler, by name of the pipe whose new pod is unschedulable. */
  readonly unschedulable: ReadonlyMap<string, string>;
  /** Autoscalers that affect the pipe container, by name of the pipe. */
  readonly autoscalers: ReadonlyMap<string, readonly AutoscalerView[]>;
}
