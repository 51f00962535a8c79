import { stopsOldPodsFirst } from "../../../kube/rollout-strategy.ts";
import { parseTime } from "../../../kube/time.ts";
import type { Deployment, DeploymentCondition } from "../../../kube/workloads.ts";
import { REVISION_ANNOTATION } from "../../names.ts";
import type { LastRollout } from "../last-rollout.ts";
import { isAnnouncedBefore, type PipeView, type RolloutProgress } from "../pipe-view.ts";
import { PAUSED, pausedByControllerAtMs } from "./field-owners.ts";
import { countsOf, type Known, type OfKind, workloadView } from "./workload.ts";

export function toPipeView(deployment: Deployment): PipeView {
  return workloadView(deployment, ofDeployment);
}

function ofDeployment(deployment: Deployment, { lastRollout }: Known): OfKind {
  const { metadata, spec } = deployment;
  return {
    kind: "Deployment",
    deadlineMs: chosenDeadlineS(spec) * 1000,
    minReadyMs: (spec.minReadySeconds ?? 0) * 1000,
    isPaused: spec.paused ?? false,
    pausedForCommitAtMs: spec.paused ? pausedByControllerAtMs(metadata, lastRollout, PAUSED) : undefined,
    stopsOldPodsFirst: stopsOldPodsFirst(spec),
    inTurn: undefined,
    revision: Number.parseInt(metadata.annotations?.[REVISION_ANNOTATION] ?? "", 10) || 0,
    rollout: rolloutProgressOf(deployment, lastRollout),
  };
}

/** The default of the API server for progressDeadlineSeconds. It does not count as a choice of the owner. */
const DEFAULT_DEADLINE_S = 600;

/** For Kubernetes, this progressDeadlineSeconds is none. */
const NO_DEADLINE_S = 2 ** 31 - 1;

/** The longest rollout timeout that can be set. A pipe that does not come up keeps others waiting no longer. */
const LONGEST_DEADLINE_S = 24 * 3600;

function chosenDeadlineS({
  progressDeadlineSeconds: chosen = DEFAULT_DEADLINE_S,
}: Deployment["spec"]): number {
  return chosen === DEFAULT_DEADLINE_S || chosen === NO_DEADLINE_S ? 0 : Math.min(chosen, LONGEST_DEADLINE_S);
}

/**
 * The reason NewReplicaSetAvailable remains even if a pod fails later. But a Recreate Deployment keeps the condition of
 * the previous rollout for a while, and a Deployment without replicas gets it without running a pod; for these, only
 * the replica counts are reliable.
 */
function rolloutProgressOf(deployment: Deployment, lastRollout: LastRollout | undefined): RolloutProgress {
  const { conditions, terminatingReplicas = 0 } = deployment.status ?? {};
  const counts = countsOf(deployment);
  const conditionOf = (wanted: string) => conditions?.find(({ type }) => type === wanted);
  const progressing = conditionOf("Progressing");
  const progressedAtS = Math.floor(parseTime(progressing?.lastUpdateTime) / 1000);
  const isAnnounced =
    progressing?.reason === "NewReplicaSetAvailable" && !isAnnouncedBefore(progressedAtS, lastRollout);
  const isComplete = counts.isUpdated && (isAnnounced || counts.isAvailable);
  return {
    ...counts,
    isComplete,
    isWithoutPods: counts.isSeen && counts.replicas === 0 && terminatingReplicas === 0,
    terminatingReplicas,
    progressedAtS,
    unavailableSinceMs: unavailableSince(conditionOf("Available"), counts),
    progressing: isComplete ? undefined : progressing,
    replicaFailure: isComplete ? undefined : conditionOf("ReplicaFailure"),
  };
}

/** The condition also counts pods that may be missing, so with one replica and `maxUnavailable: 1` it is always true. */
function unavailableSince(
  condition: DeploymentCondition | undefined,
  { isUpdated, isAnyAvailable }: ReturnType<typeof countsOf>,
): number | undefined {
  if (condition?.status !== "False" || !isUpdated || isAnyAvailable) return undefined;
  return parseTime(condition.lastTransitionTime) || undefined;
}
