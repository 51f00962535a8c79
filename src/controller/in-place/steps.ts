import type { DeploymentView } from "../observe/deployment-view.ts";
import type { Resources } from "../observe/resources.ts";
import type { Timeouts } from "../timeouts.ts";
import type { PodView } from "./pod-view.ts";
import type { ReplicaSetView } from "./replica-set-view.ts";
import type { Fallback, InPlaceView } from "./view.ts";

/** The next step of a resize in place. */
export type InPlaceStep =
  | { readonly type: "resize-pods"; readonly pods: readonly PodView[] }
  /** @param untilMs by the clock of the view */
  | { readonly type: "wait"; readonly untilMs: number }
  /** An empty ReplicaSet that Kubernetes would use in place of the current one. */
  | { readonly type: "delete-replica-set"; readonly replicaSet: ReplicaSetView }
  /** The template gets the size while the Deployment is paused, so that no rollout starts. */
  | { readonly type: "pause" }
  /** The ReplicaSet gets the size, so that it is the one of the new template. */
  | {
      readonly type: "update-replica-set";
      readonly replicaSet: ReplicaSetView;
      /** The resources in the template. */
      readonly resources: Resources;
    }
  /** The template of the paused Deployment may have been changed by its owner. */
  | { readonly type: "read-template" }
  /** @param fallback why its pods are replaced then; absent if they are not */
  | { readonly type: "resume"; readonly fallback?: Fallback }
  | ({
      readonly type: "fall-back";
      /** Pods that get the resources of their ReplicaSet. */
      readonly restore: readonly PodResources[];
      /** It gets its old resources again. The Deployment controller then replaces its pods. */
      readonly restoreReplicaSet?: ReplicaSetResources;
    } & Fallback)
  | { readonly type: "done" };

export interface PodResources {
  readonly pod: PodView;
  readonly resources: Resources;
}

export interface ReplicaSetResources {
  readonly replicaSet: ReplicaSetView;
  readonly resources: Resources;
}

export type CommitStep = Extract<
  InPlaceStep,
  { readonly type: "wait" | "update-replica-set" | "read-template" | "resume" }
>;

export interface InPlaceContext {
  readonly pipe: DeploymentView;
  readonly container: string;
  /** Resources of the container at the desired size. */
  readonly target: Resources;
  /** True if the template of the Deployment has the desired size. */
  readonly isTemplateSized: boolean;
  readonly view: InPlaceView;
  readonly timeouts: Timeouts;
  /** Why a ReplicaSet cannot be deleted, after so many attempts that the pipe falls back to a rollout. */
  readonly failedDeletion?: Fallback | undefined;
}
