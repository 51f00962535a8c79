import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import type { Size } from "../../domain/size.ts";
import type { PodView } from "../in-place/pod-view.ts";
import type { ReplicaSetView } from "../in-place/replica-set-view.ts";
import type { PodResources, ReplicaSetResources } from "../in-place/steps.ts";
import type { Fallback } from "../in-place/view.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { LastRollout } from "../observe/last-rollout.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Allotment, Resources } from "../observe/resources.ts";

/** A write to one pipe. */
export type PipeAction =
  /** Applies the desired size, which starts a rollout. */
  | {
      readonly type: "resize";
      /** True if the pods have the size already: the Deployment is paused, so that no rollout starts. */
      readonly isCommit?: boolean;
      readonly pipe: DeploymentView;
      readonly container: string;
      readonly rollout: LastRollout;
    }
  /** Returns a pipe to its last good size after its rollout failed. */
  | {
      readonly type: "roll-back";
      readonly pipe: DeploymentView;
      readonly container: string;
      readonly size: Allotment;
      readonly rollout: LastRollout;
    }
  /**
   * Writes only the annotation: if the pipe was deployed with the desired size, so that the size survives a deletion of
   * the PipeScaling, or if something removed the annotation.
   */
  | { readonly type: "adopt"; readonly pipe: DeploymentView; readonly rollout: LastRollout };

/** Checks with a dry run whether the API server accepts the desired size of a pipe. */
export interface ValidateAction {
  readonly type: "validate";
  /** Also checks whether a node is large enough for the pod in the response to the dry run. */
  readonly checksNodes: boolean;
  readonly pipe: DeploymentView;
  readonly container: string;
  readonly rollout: LastRollout;
}

/** A step of a resize in place. */
export type InPlaceAction =
  /** Watches the pods of a pipe, and checks with a dry run whether its template can follow. */
  | {
      readonly type: "begin-in-place";
      readonly pipe: DeploymentView;
      readonly container: string;
      readonly size: Size;
      /** Absent if a predecessor began the commit already. */
      readonly rollout?: LastRollout;
    }
  | {
      readonly type: "resize-pod";
      readonly pipe: DeploymentView;
      readonly pod: PodView;
      readonly container: string;
      readonly resources: Resources;
      /** The size that the pods get, in the format of `formatSize`. */
      readonly size: string;
    }
  | {
      readonly type: "delete-replica-set";
      readonly pipe: DeploymentView;
      readonly replicaSet: ReplicaSetView;
      readonly size: string;
    }
  | {
      readonly type: "update-replica-set";
      readonly pipe: DeploymentView;
      readonly replicaSet: ReplicaSetView;
      readonly container: string;
      readonly resources: Resources;
      readonly size: string;
    }
  | { readonly type: "read-template"; readonly pipe: DeploymentView }
  | {
      readonly type: "resume";
      readonly pipe: DeploymentView;
      /** Why its pods are replaced then, instead of being resized in place to this size; absent if they are not. */
      readonly fallback?: Fallback & { readonly size: string };
    }
  /** Gives pods the resources of their ReplicaSet, and after a commit the ReplicaSet its old ones. A rollout follows. */
  | {
      readonly type: "fall-back";
      readonly pipe: DeploymentView;
      readonly container: string;
      readonly size: string;
      readonly fallback: Fallback;
      readonly restore: readonly PodResources[];
      readonly restoreReplicaSet?: ReplicaSetResources;
    };

/** The next steps of the controller, as data; apply/ runs them. */
export type Action =
  | PipeAction
  | InPlaceAction
  | ValidateAction
  /** Creates the PipeScaling after the first pipe of a service appeared, or after the PipeScaling was deleted. */
  | {
      readonly type: "create-pipe-scaling";
      readonly namespace: string;
      readonly name: string;
      readonly spec: PipeScalingSpec;
    }
  /** Reads a pipe whose last write got no response. */
  | { readonly type: "refresh"; readonly pipe: DeploymentView }
  /** Finds out which one is outdated: our view of the PipeScaling, or the generation that these pipes record. */
  | {
      readonly type: "confirm-generation";
      readonly scaling: PipeScalingView;
      readonly pipes: readonly DeploymentView[];
    };
