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

/** The state of one service at one moment. Decisions depend only on this and on their options. */
export interface Snapshot {
  readonly serviceId: string;
  readonly nowMs: number;
  readonly timeouts: Timeouts;
  /** Namespace of the service's pipes, if its record is readable. */
  readonly namespace: string | undefined;
  readonly tier: Found<Tier>;
  /**
   * The window of the service, or else of its organization. Restarts, or all resizes, begin only within it; `undefined`
   * if they may begin at any time.
   */
  readonly rolloutWindow: RolloutWindow | undefined;
  /** The PipeScaling in the service's namespace. */
  readonly scaling: PipeScalingView | undefined;
  /**
   * A deleted PipeScaling is not created again before `atMs`, in milliseconds since 1970. `isSeen`: this process saw
   * the deletion.
   */
  readonly recreation: { readonly atMs: number; readonly isSeen: boolean };
  /** PipeScalings with the ID of this service outside its namespace, or while it has no readable record. */
  readonly unmanaged: readonly PipeScalingView[];
  /** Pipes with the label of this service outside its namespace, or while it has no readable record. */
  readonly orphans: readonly PipeView[];
  /** Sorted by name. Only pipes in the service's namespace, because labels in other namespaces are not trusted. */
  readonly pipes: readonly PipeView[];
  /** Former pipes of this service that the controller still has to release after a commit (isUnreleased). */
  readonly departed: readonly PipeView[];
  /** The pods of each pipe, by its name (nameOf). */
  readonly pods: ReadonlyMap<string, readonly PodView[]>;
  /** The last pod of each pipe that was seen to end, by name of the pipe (nameOf). */
  readonly endedPods: ReadonlyMap<string, EndedPod | undefined>;
  /** The message of the API server if the controller may not watch pods; `undefined` if it may. */
  readonly podsProblem: string | undefined;
  /** When this process began to write, in milliseconds since 1970. */
  readonly leadingSinceMs: number;
  /** The last writes of this process to each object. */
  readonly writes: WriteRecords;
  /** How pipes are resized: in place, by a rollout, or in place if possible and otherwise by a rollout. */
  readonly strategy: ResizeStrategy;
  /** Autoscalers that affect the pipe container, by name of the pipe. */
  readonly autoscalers: ReadonlyMap<string, readonly AutoscalerView[]>;
}
