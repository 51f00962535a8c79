import type { FailureReason } from "../../crd/reasons.ts";
import type { ResizeStrategy } from "../../domain/resize-strategy.ts";
import type { RolloutWindow } from "../../domain/rollout-window.ts";
import type { Tier } from "../../domain/tier.ts";
import type { Timeouts } from "../timeouts.ts";
import type { AutoscalerView } from "./autoscaler-view.ts";
import type { EndedPod } from "./deleted-objects.ts";
import type { PipeScalingView } from "./pipe-scaling-view.ts";
import type { PipeView } from "./pipe-view.ts";
import type { PodView } from "./pod-view.ts";
import type { WriteRecords } from "./write-record.ts";

/** The reason why no pipe of a service can be resized. */
export interface Obstacle {
  readonly reason: Extract<FailureReason, `Unknown${string}` | "MalformedRecord">;
  readonly message: string;
}

export type Found<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly obstacle: Obstacle };

/** The state of one service at one moment: the only input of decisions. */
export interface Snapshot {
  readonly serviceId: string;
  readonly nowMs: number;
  readonly timeouts: Timeouts;
  /** Namespace of the service's pipes, if its record is readable. */
  readonly namespace: string | undefined;
  readonly tier: Found<Tier>;
  /** That of the service, or else of its organization. Rollouts start only within it; absent if at any time. */
  readonly rolloutWindow: RolloutWindow | undefined;
  /** The PipeScaling in the service's namespace. */
  readonly scaling: PipeScalingView | undefined;
  /** A deleted PipeScaling is not created again before this time, in milliseconds since 1970. */
  readonly recreation: { readonly atMs: number; readonly isSeen: boolean };
  /** PipeScalings with this name in other namespaces, or of an unknown service. */
  readonly unmanaged: readonly PipeScalingView[];
  /** Pipes with the label of this service outside its namespace, or while it has no readable record. */
  readonly orphans: readonly PipeView[];
  /** Sorted by name. Only pipes in the service's namespace, because labels in other namespaces are not trusted. */
  readonly pipes: readonly PipeView[];
  /** Workloads that are no pipes of this service any more, and still paused by the controller. */
  readonly departed: readonly PipeView[];
  /** The pods of each pipe, by its name (nameOf). */
  readonly pods: ReadonlyMap<string, readonly PodView[]>;
  /** The pod of each pipe that was last seen to end, by name of the pipe. */
  readonly endedPods: ReadonlyMap<string, EndedPod | undefined>;
  /** Why the controller does not see the pods: the message of the API server. */
  readonly podsProblem: string | undefined;
  /** When this process began to write, in milliseconds since 1970. */
  readonly leadingSinceMs: number;
  /** The last writes of this process to each object. */
  readonly writes: WriteRecords;
  /** How pipes are resized: in place if possible, or always by a rollout. */
  readonly strategy: ResizeStrategy;
  /** Autoscalers that affect the pipe container, by name of the pipe. */
  readonly autoscalers: ReadonlyMap<string, readonly AutoscalerView[]>;
}
