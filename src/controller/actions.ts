import type { PipeScalingSpec } from "../crd/pipe-scaling.ts";
import type { Fallback, LastRollout } from "./observe/last-rollout.ts";
import type { PipeScalingView } from "./observe/pipe-scaling-view.ts";
import type { PipeView } from "./observe/pipe-view.ts";
import type { PodView } from "./observe/pod-view.ts";
import type { Allotment, Resources } from "./observe/resources.ts";

interface OfPipe {
  readonly pipe: PipeView;
}

interface OfContainer extends OfPipe {
  readonly container: string;
}

/** Fields of a write with the annotation. */
interface OfRollout extends OfContainer {
  readonly rollout: LastRollout;
}

/** A write to the workload of one pipe, with its annotation. */
export type PipeAction =
  /** Applies the desired size, which starts a rollout. */
  | ({ readonly type: "resize" } & OfRollout)
  /** Returns a pipe to its last good size after its rollout failed. */
  | ({ readonly type: "roll-back"; readonly size: Allotment } & OfRollout)
  /**
   * Writes only the annotation: what nothing else would show later. `ownsSize`: the controller also becomes an owner of
   * the fields of the size, which stay as they are.
   */
  | ({ readonly type: "adopt"; readonly rollout: LastRollout; readonly ownsSize?: boolean } & OfPipe);

/** Gives a pod its new size, or the one of its template again. */
export interface PodAction extends OfContainer {
  readonly type: "resize-pod" | "return-pod";
  readonly pod: PodView;
  readonly resources: Resources;
  /** People asked for it, so earlier attempts do not count. */
  readonly isRequested?: boolean;
}

/** Deletes a pod of a size that failed, so that the workload creates it with its present template. */
export interface DeletePodAction extends OfPipe {
  readonly type: "delete-pod";
  readonly pod: PodView;
}

/** A step of a resize in place. */
export type InPlaceAction =
  | PodAction
  /** All pods have the size: sets it in the template, and pauses rollouts in the same write. */
  | ({ readonly type: "commit" } & OfRollout)
  /**
   * Reads the paused workload and its ReplicaSets or pods, and makes the next write of the commit.
   *
   * `isOverdue`: Kubernetes has not responded in time, so the template gets its old size again. `fallback`: why the pipe is
   * not tried in place again then. `mayReplacePods`: if nothing else ends the commit.
   */
  | ({
      readonly type: "continue-commit";
      readonly isOverdue: boolean;
      readonly fallback?: Fallback | undefined;
      readonly mayReplacePods: boolean;
    } & OfContainer)
  | ({ readonly type: "resume" } & OfPipe)
  /** Leaves the partition to the owner. It is the last write of the commit of a StatefulSet. */
  | ({ readonly type: "leave-partition" } & OfPipe)
  /**
   * The template has the size, and pods do not and cannot be resized. If the ReplicaSet gets the resources of such a
   * pod, it is not the one of the template any more, so the Deployment controller replaces its pods. `templateHash`: of
   * the pod. If the ReplicaSet with it has no pods, the view of the pod was outdated.
   */
  | ({
      readonly type: "replace-pods";
      readonly resources: Resources;
      readonly templateHash: string;
    } & OfContainer);

/** The next steps of the controller, as data; apply/ runs them. */
export type Action =
  | PipeAction
  | InPlaceAction
  | DeletePodAction
  /**
   * Checks whether the API server accepts the desired size of a pipe.
   *
   * `subject`: what the result depends on. `checksNodes`: also checks whether a node is large enough for the pod in the
   * response. `triedPod`: also tries the size on this pod, because a quota or a LimitRange that refuses it there refuses a new
   * pod, too. `isCommit`: also checks that nothing but the size changes in the template, and that the controller could later
   * recognize the pause as its own.
   */
  | ({
      readonly type: "dry-run";
      readonly subject: string;
      readonly checksNodes: boolean;
      /** People asked for it. */
      readonly isRequested?: boolean;
      readonly triedPod?: PodView | undefined;
      readonly isCommit: boolean;
    } & OfRollout)
  /**
   * Searches for nodes with room for new pods in place of `stopping`. `fullNodes`: names of nodes that have none,
   * because they defer a resize; then the pipe keeps its pods if the controller may not search.
   */
  | ({
      readonly type: "check-room";
      readonly subject: string;
      readonly stopping: readonly PodView[];
      readonly fullNodes: readonly string[];
    } & OfRollout)
  /** Creates the PipeScaling after the first pipe of a service appeared, or after the PipeScaling was deleted. */
  | {
      readonly type: "create-pipe-scaling";
      readonly namespace: string;
      readonly name: string;
      readonly spec: PipeScalingSpec;
    }
  /** Reads a pipe whose last write got no response, or that left the cache while it was paused for a commit. */
  | ({ readonly type: "refresh" } & OfPipe)
  /** Finds out which one is outdated: our view of the PipeScaling, or the generation that these pipes record. */
  | {
      readonly type: "confirm-generation";
      readonly scaling: PipeScalingView;
      readonly pipes: readonly PipeView[];
    };
