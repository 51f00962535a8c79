import type { PipeScalingSpec } from "../../crd/pipe-scaling.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { LastRollout } from "../observe/last-rollout.ts";
import type { PipeScalingView } from "../observe/pipe-scaling-view.ts";
import type { Allotment } from "../observe/resources.ts";

/** A write to one pipe. */
export type PipeAction =
  /** Apply the desired size, which starts a rollout. */
  | {
      readonly type: "resize";
      readonly pipe: DeploymentView;
      readonly container: string;
      readonly rollout: LastRollout;
    }
  /** Return a pipe that could not take the desired size to its last good size. */
  | {
      readonly type: "roll-back";
      readonly pipe: DeploymentView;
      readonly container: string;
      readonly size: Allotment;
      readonly rollout: LastRollout;
    }
  /**
   * Write the annotation only: of a pipe that was deployed with the desired size, so that the size survives a deletion of
   * the PipeScaling, or of one from which something removed it.
   */
  | { readonly type: "adopt"; readonly pipe: DeploymentView; readonly rollout: LastRollout };

/** Ask the API server, by a dry run, whether it would take the desired size of a pipe. */
export interface ValidateAction {
  readonly type: "validate";
  /** Also find out whether a node is large enough for the pod that the dry run shows. */
  readonly checksNodes: boolean;
  readonly pipe: DeploymentView;
  readonly container: string;
  readonly rollout: LastRollout;
}

/** The next steps of the controller, as data; apply/ does them. */
export type Action =
  | PipeAction
  | ValidateAction
  /** The first pipe of a service appeared, or its PipeScaling was deleted. */
  | {
      readonly type: "create-pipe-scaling";
      readonly namespace: string;
      readonly name: string;
      readonly spec: PipeScalingSpec;
    }
  /** Read a pipe whose last write got no response. */
  | { readonly type: "refresh"; readonly pipe: DeploymentView }
  /** Find out which is wrong: our view of the PipeScaling, or the generation that these pipes record. */
  | {
      readonly type: "confirm-generation";
      readonly scaling: PipeScalingView;
      readonly pipes: readonly DeploymentView[];
    };
