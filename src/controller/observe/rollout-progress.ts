import type { Deployment, DeploymentCondition } from "../../kube/objects.ts";
import { parseTime } from "../../kube/time.ts";
import type { LastRollout } from "./last-rollout.ts";

/** Progress of the rollout of the current template, as the Deployment controller reports it. */
export interface RolloutProgress {
  readonly isComplete: boolean;
  /** Every wanted replica is available, of whatever template. */
  readonly isAvailable: boolean;
  /** Every pod is of the current template, whatever its state. */
  readonly isUpdated: boolean;
  /** The status is of the newest generation. */
  readonly isSeen: boolean;
  /** A current status reports no pods of any template. */
  readonly isWithoutPods: boolean;
  readonly terminatingReplicas: number;
  /** `lastUpdateTime` of the condition Progressing, in seconds since 1970; 0 for none. */
  readonly progressedAtS: number;
  /** Only set while the rollout is not complete, to save memory. */
  readonly progressing: DeploymentCondition | undefined;
  readonly replicaFailure: DeploymentCondition | undefined;
}

export function rolloutProgressOf(
  deployment: Deployment,
  lastRollout: LastRollout | undefined,
): RolloutProgress {
  const { status } = deployment;
  const conditionOf = (type: string) => status?.conditions?.find((each) => each.type === type);
  const progressing = conditionOf("Progressing");
  const progressedAtS = Math.floor(parseTime(progressing?.lastUpdateTime) / 1000);
  const isComplete = isRolloutComplete(deployment, progressedAtS, lastRollout);
  return {
    isComplete,
    isAvailable: isAvailable(deployment),
    isUpdated: isUpdated(deployment),
    isSeen: isSeen(deployment),
    isWithoutPods: isSeen(deployment) && !status?.replicas && !status?.terminatingReplicas,
    terminatingReplicas: status?.terminatingReplicas ?? 0,
    progressedAtS,
    progressing: isComplete ? undefined : progressing,
    replicaFailure: isComplete ? undefined : conditionOf("ReplicaFailure"),
  };
}

/**
 * Returns true if the rollout of the current template completed. The reason NewReplicaSetAvailable remains even if a
 * pod fails later. But a Recreate Deployment keeps the condition of the previous rollout for a while, and a Deployment
 * without replicas gets it without running a pod; for these, only the replica counts are reliable.
 */
function isRolloutComplete(
  deployment: Deployment,
  progressedAtS: number,
  lastRollout: LastRollout | undefined,
): boolean {
  const { status } = deployment;
  if (!isUpdated(deployment)) return false;
  const isAnnounced = status?.conditions?.some(
    ({ type, reason }) => type === "Progressing" && reason === "NewReplicaSetAvailable",
  );
  return (isAnnounced === true && !isAnnouncedBefore(progressedAtS, lastRollout)) || isAvailable(deployment);
}

function isUpdated(deployment: Deployment): boolean {
  const { spec, status } = deployment;
  const replicas = status?.replicas ?? 0;
  return (
    isSeen(deployment) && replicas === (status?.updatedReplicas ?? 0) && replicas >= (spec.replicas ?? 1)
  );
}

/** Returns true if the condition Progressing says nothing about this rollout. */
export function isAnnouncedBefore(progressedAtS: number, lastRollout: LastRollout | undefined): boolean {
  // Times are compared only for equality, because clocks differ.
  return lastRollout?.progressedAtS === progressedAtS || lastRollout?.replicas === 0;
}

function isAvailable({ spec, status }: Deployment): boolean {
  return (status?.availableReplicas ?? 0) >= (spec.replicas ?? 1);
}

/** Returns true if the status is of the newest generation of the Deployment. */
function isSeen({ metadata, status }: Deployment): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
}
