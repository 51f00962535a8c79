import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { LastRollout } from "../observe/last-rollout.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Allotment } from "../observe/resources.ts";

/** A write to one pipe. */
export type PipeAction =
  /** Applies the desired size, which starts a rollout. */
  | {
      readonly type: "resize";
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

/** The next steps of the controller, as data; apply/ runs them. */
export type Action =
  | PipeAction
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
