import { parseQuantity } from "../../../domain/quantity.ts";
import { shared } from "../../../kube/memoized.ts";
import { type Container, type Deployment, identityOf } from "../../../kube/objects.ts";
import { stopsOldPodsFirst } from "../../../kube/rollout-strategy.ts";
import { parseTime } from "../../../kube/time.ts";
import { CONTAINER_ANNOTATION, REVISION_ANNOTATION, SERVICE_LABEL } from "../../names.ts";
import type { LastRollout, WrittenRollout } from "../last-rollout.ts";
import { isAnnouncedBefore, type PipeView, type RolloutProgress } from "../pipe-view.ts";
import { resourcesOf, sizeOf } from "../resources.ts";
import {
  cpuLimitFollows,
  earlierResizeAtMs,
  labeledAtMs,
  otherManagersOf,
  ownLastRollout,
  ownsSize,
  pausedByControllerAtMs,
} from "./field-owners.ts";
import { chooseContainer, isLabelled, podTemplateProblem } from "./pod-template.ts";
import { startupReadsOf } from "./startup-reads.ts";

/** @param written the last rollout that the controller just wrote, if this is the response */
export function toPipeView(deployment: Deployment, written?: WrittenRollout): PipeView {
  const { metadata, spec } = deployment;
  const { annotations = {}, managedFields } = metadata;
  const chosen = chooseContainer(spec.template, annotations[CONTAINER_ANNOTATION]);
  const container = "problem" in chosen ? undefined : chosen;
  const { containers } = spec.template.spec;
  const size = container && sizeOf(container);
  const limitFollows = cpuLimitFollows(container, managedFields);
  const lastRollout = ownLastRollout(metadata, written);
  const pausedForCommitAtMs = spec.paused ? pausedByControllerAtMs(metadata, lastRollout) : undefined;
  const serviceId = shared(metadata.labels?.[SERVICE_LABEL] ?? "");
  // Objects with the same properties in the same order take the least memory, so none is left out.
  return {
    metadata: identityOf(metadata),
    serviceId,
    createdAtMs: parseTime(metadata.creationTimestamp),
    labeledAtMs: labeledAtMs(metadata),
    isBeingDeleted: metadata.deletionTimestamp !== undefined,
    container: shared(
      "problem" in chosen ? { ...chosen, resources: containers.map(resourcesOf) } : { name: chosen.name },
    ),
    size,
    otherResources: container && !size ? resourcesOf(container) : undefined,
    cpuLimitFollows: limitFollows,
    cpuLimitMillicores: container && !limitFollows ? cpuLimitMillicores(container) : undefined,
    otherManagers: otherManagersOf(container?.name, managedFields),
    ownsSize: ownsSize(container, managedFields, limitFollows),
    replicas: spec.replicas ?? 1,
    hasLabelledPods: isLabelled(spec.template),
    templateProblem: container && podTemplateProblem(spec.template, serviceId, container.name),
    startupReads: startupReadsOf(spec.template, container, limitFollows),
    deadlineMs: deadlineMsOf(spec),
    isPaused: spec.paused ?? false,
    isPausedForCommit: pausedForCommitAtMs !== undefined,
    pausedForCommitAtMs,
    stopsOldPodsFirst: stopsOldPodsFirst(spec),
    revision: Number.parseInt(annotations[REVISION_ANNOTATION] ?? "", 10) || 0,
    rollout: rolloutProgressOf(deployment, lastRollout),
    lastRollout,
    resizedAtMs: lastRollout ? undefined : earlierResizeAtMs(container?.name, metadata),
  };
}

function cpuLimitMillicores({ resources }: Container): number | undefined {
  const cpuLimit = parseQuantity(resources?.limits?.["cpu"] ?? "");
  return cpuLimit === undefined ? undefined : Number(cpuLimit / 1_000_000n);
}

/** The default of Kubernetes for progressDeadlineSeconds, which every Deployment has. */
const DEFAULT_DEADLINE_S = 600;

function deadlineMsOf({
  progressDeadlineSeconds = DEFAULT_DEADLINE_S,
  minReadySeconds = 0,
}: Deployment["spec"]): number {
  const chosenS = progressDeadlineSeconds === DEFAULT_DEADLINE_S ? 0 : progressDeadlineSeconds;
  return (chosenS + minReadySeconds) * 1000;
}

/**
 * The reason NewReplicaSetAvailable remains even if a pod fails later. But a Recreate Deployment keeps the condition of
 * the previous rollout for a while, and a Deployment without replicas gets it without running a pod; for these, only
 * the replica counts are reliable.
 */
function rolloutProgressOf(
  { metadata, spec, status = {} }: Deployment,
  lastRollout: LastRollout | undefined,
): RolloutProgress {
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0, terminatingReplicas = 0 } = status;
  const wanted = spec.replicas ?? 1;
  const conditionOf = (wantedType: string) => status.conditions?.find(({ type }) => type === wantedType);
  const progressing = conditionOf("Progressing");
  const progressedAtS = Math.floor(parseTime(progressing?.lastUpdateTime) / 1000);
  const isSeen = (status.observedGeneration ?? 0) >= (metadata.generation ?? 0);
  const isAvailable = availableReplicas >= wanted;
  const isUpdated = isSeen && replicas === updatedReplicas && replicas >= wanted;
  const isAnnounced =
    progressing?.reason === "NewReplicaSetAvailable" && !isAnnouncedBefore(progressedAtS, lastRollout);
  const isComplete = isUpdated && (isAnnounced || isAvailable);
  return {
    isComplete,
    isAvailable,
    isAnyAvailable: availableReplicas > 0,
    isUpdated,
    isSeen,
    isWithoutPods: isSeen && replicas === 0 && terminatingReplicas === 0,
    replicas,
    terminatingReplicas,
    progressedAtS,
    progressing: isComplete ? undefined : progressing,
    replicaFailure: isComplete ? undefined : conditionOf("ReplicaFailure"),
  };
}
