import type { PipeScalingSpec } from "../crd/pipe-scaling.ts";
import type { Fallback, LastRollout } from "./observe/last-rollout.ts";
import type { PipeScalingView } from "./observe/pipe-scaling-view.ts";
import type { PipeView } from "./observe/pipe-view.ts";
import type { PodView } from "./observe/pod-view.ts";
import type { Allotment, Resources, SomeResources } from "./observe/resources.ts";

interface OfPipe {
  readonly pipe: PipeView;
}

interface OfContainer extends OfPipe {
  readonly container: string;
}

interface OfRollout extends OfContainer {
  /** The value of the last-rollout annotation in a write, or in a dry run of it. */
  readonly rollout: LastRollout;
}

export interface Judging {
  /**
   * The pods of the pipe, if the write is a judgment about them. It is made only if a read shows the same pods, because
   * a watch can be silent for longer than the judgment took.
   */
  readonly judged?: readonly PodView[] | undefined;
}

/** A write to the workload of one pipe that sets the last-rollout annotation. */
export type PipeAction =
  /** Applies the desired size, which starts a rollout. */
  | ({ readonly type: "resize" } & OfRollout)
  /** Returns a pipe to its last good size after its rollout failed. */
  | ({ readonly type: "roll-back"; readonly size: Allotment } & OfRollout & Judging)
  /**
   * Writes only the annotation, to record what nothing else would show later. `ownsSize`: also makes the controller an
   * owner of the size fields, without a change of their values.
   */
  | ({ readonly type: "adopt"; readonly rollout: LastRollout; readonly ownsSize?: boolean } & OfPipe &
      Judging);

/** Resizes a running pod to the desired size, or back to the size of its template. */
export interface PodAction extends OfContainer {
  readonly type: "resize-pod" | "return-pod";
  readonly pod: PodView;
  readonly resources: SomeResources;
  /** People asked for it, so earlier attempts do not count. */
  readonly isRequested?: boolean;
}

/** Deletes a pod that is not ready, so that its StatefulSet creates it again from its template. */
export interface DeletePodAction extends OfPipe {
  readonly type: "delete-pod";
  readonly pod: PodView;
  /** The pod has a size that failed, and not only an earlier template. */
  readonly isFailed: boolean;
}

/** A step of a resize in place, or the replacement of pods for which it is not possible. */
export type InPlaceAction =
  | PodAction
  /** All pods have the size: sets it in the template, and pauses rollouts in the same write. */
  | ({ readonly type: "commit" } & OfRollout)
  /** Reads the paused workload and its ReplicaSets or pods, and makes the next write of the commit. */
  | ({
      readonly type: "continue-commit";
      /** The commit took too long or a write was refused, so it has to end, possibly with the old template. */
      readonly isOverdue: boolean;
      /** Why a write was refused, for the annotation. */
      readonly fallback?: Fallback | undefined;
      /** A rollout may end the commit if nothing else can. */
      readonly mayReplacePods: boolean;
    } & OfContainer)
  | ({ readonly type: "resume" } & OfPipe)
  /** Gives up the ownership of the field `partition`. This is the last write of the commit of a StatefulSet. */
  | ({ readonly type: "leave-partition" } & OfPipe)
  /**
   * Replaces pods that lack the size of the template and cannot be resized. The ReplicaSet gets the resources of such a
   * pod, so it no longer matches the template, and the Deployment controller replaces its pods. Pods of a StatefulSet
   * get another label. If the ReplicaSet has no pods, or the pods have the size by now, our view of them was outdated,
   * and nothing is written.
   */
  | ({
      readonly type: "replace-pods";
      readonly resources: Resources;
      /** That of the pod. */
      readonly templateHash: string;
      /** UIDs of pods whose resize may still succeed. Only a StatefulSet can keep them. */
      readonly kept: readonly string[];
    } & OfContainer);

/** One step of the controller, as data; `apply/` runs it. */
export type Action =
  | PipeAction
  | InPlaceAction
  | DeletePodAction
  /** Checks whether the API server accepts the desired size of a pipe. */
  | ({
      readonly type: "dry-run";
      /** Identifies everything that the result depends on. */
      readonly subject: string;
      /** Also checks whether a node is large enough for a pod of the template in the response. */
      readonly checksNodes: boolean;
      /** People asked for it. */
      readonly isRequested?: boolean;
      /** Also tries the size on this pod: a quota or a LimitRange that refuses it there also refuses a new pod. */
      readonly triedPod?: PodView | undefined;
      /**
       * Tries the commit instead of the rollout, and checks that only the size changes in the template and that the
       * controller can later recognize the pause as its own.
       */
      readonly isCommit: boolean;
    } & OfRollout)
  /** Searches for nodes with room for new pods in place of `stopping`. */
  | ({
      readonly type: "check-room";
      readonly subject: string;
      readonly stopping: readonly PodView[];
      /**
       * Names of nodes without room, because they defer a resize. If there are any and the search is not possible, the
       * pipe keeps its pods.
       */
      readonly fullNodes: readonly string[];
      /** The time that the rollout may take. */
      readonly lastsMs: number;
    } & OfRollout)
  /** Creates the PipeScaling after the first pipe of a service appeared, or after the PipeScaling was deleted. */
  | {
      readonly type: "create-pipe-scaling";
      readonly namespace: string;
      readonly name: string;
      readonly spec: PipeScalingSpec;
    }
  /** Reads a pipe whose last write got no response, or that left the cache before it was released after a commit. */
  | ({ readonly type: "refresh" } & OfPipe)
  /** Finds out what is outdated, and corrects it: our view of the PipeScaling, or the generation in these pipes. */
  | {
      readonly type: "confirm-generation";
      readonly scaling: PipeScalingView;
      readonly pipes: readonly PipeView[];
    };

/** The action of a type, or any of several. */
export type Of<Type extends Action["type"]> = Extract<Action, { readonly type: Type }>;
