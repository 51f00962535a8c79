import type { FallbackReason } from "../../crd/fallback-reasons.ts";
import type { PodView } from "./pod-view.ts";
import type { ReplicaSetView } from "./replica-set-view.ts";
import type { TemplateView } from "./template-view.ts";

/** The pods of a pipe that may be resized in place, and what this process did to them. */
export interface InPlaceView {
  /** The size that the pods get, in the format of `formatSize`. */
  readonly size: string;
  /** False until the pods and ReplicaSets are listed, and the dry run of the commit has ended. */
  readonly isReady: boolean;
  /** Why the pipe fell back to a rollout. */
  readonly fallback: Fallback | undefined;
  /** Why the pipe falls back to a rollout as soon as its pods have their old size again. */
  readonly failure: Fallback | undefined;
  /** Active pods of the Deployment, as its ReplicaSet counts them. */
  readonly pods: readonly PodView[];
  /** ReplicaSets of the Deployment. */
  readonly replicaSets: readonly ReplicaSetView[];
  /** Revision of the Deployment when this process began. */
  readonly revision: number;
  /** When this process began, by its monotonic clock. */
  readonly beganAtMs: number;
  /** When this process resized each pod, by UID. */
  readonly resizedAtMs: ReadonlyMap<string, number>;
  /** When this process last began to write to each pod, by UID. The write may have had no effect. */
  readonly triedAtMs: ReadonlyMap<string, number>;
  /** True while a write to a pod is in flight, so that the size of the pod is unknown. */
  readonly isWriting: boolean;
  /** Each pod before this process resized it, or as this process first saw it, by UID. */
  readonly podsBefore: ReadonlyMap<string, PodView>;
  /** The template of the Deployment and its generation, when this process last read it. */
  readonly template: DeploymentTemplate | undefined;
  /** When this process first saw the Deployment paused for a commit. */
  readonly pausedAtMs: number | undefined;
  readonly nowMs: number;
}

export interface DeploymentTemplate extends TemplateView {
  /** The generation of the Deployment. */
  readonly generation: number;
}

export interface Fallback {
  readonly reason: FallbackReason;
  readonly message: string;
}
