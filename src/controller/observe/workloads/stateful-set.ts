import { createHash } from "node:crypto";
import { CONTROLLER_FIELD_MANAGER } from "../../../crd/names.ts";
import { isManagedBy, isUnmanaged, managedAtMs } from "../../../kube/managers.ts";
import type { ManagedFields } from "../../../kube/objects.ts";
import type { Container, PodTemplate } from "../../../kube/pods.ts";
import { maxUnavailableOf } from "../../../kube/rollout-strategy.ts";
import { parseTime } from "../../../kube/time.ts";
import type { StatefulSet } from "../../../kube/workloads.ts";
import type { LastRollout } from "../last-rollout.ts";
import type { Hold, PipeView, RolloutProgress } from "../pipe-view.ts";
import { PARTITION, pausedByControllerAtMs } from "./field-owners.ts";
import { countsOf, type Known, type OfKind, workloadView } from "./workload.ts";

/**
 * The controller adds it to the partition of the owner to hold all pods, whatever their index is, while their template
 * follows them. The number shows whose hold it is, and which partition to restore (docs/adr/0037). A partition of the
 * owner that is as large already holds all pods, so nothing is added to it.
 */
export const HOLD = 1_000_000_000;

export function toStatefulPipeView(statefulSet: StatefulSet): PipeView {
  return workloadView(statefulSet, ofStatefulSet);
}

const ON_DELETE = "OnDelete";

/** The owners of any field of the spec. */
const SPEC = [["f:spec"]];

/** The subresource by which autoscalers set only the number of replicas. */
const SCALE = "scale";

function ofStatefulSet(statefulSet: StatefulSet, known: Known): OfKind {
  const { spec, status = {} } = statefulSet;
  const { managedFields = [] } = statefulSet.metadata;
  const { replicas = 1, minReadySeconds = 0 } = spec;
  const heldAtMs = heldByControllerAtMs(statefulSet, known.lastRollout);
  const partition = partitionOf(spec, heldAtMs !== undefined);
  const needsHold = partition !== undefined && partition < HOLD;
  const hold = holdOf(spec, partition);
  const replaceable = replicas - (hold?.pods ?? 0);
  const template = templateIdOf(spec.template, known);
  const rollout = rolloutProgressOf(statefulSet, hold);
  const isOfOneRevision = status.currentRevision === status.updateRevision;
  return {
    kind: "StatefulSet",
    deadlineMs: 0,
    minReadyMs: minReadySeconds * 1000,
    isPaused: replicas > 0 && replaceable === 0,
    pausedForCommitAtMs: needsHold ? heldAtMs : committingSinceMs(known.lastRollout),
    stopsOldPodsFirst: true,
    inTurn: {
      steps: Math.max(1, Math.ceil(replaceable / maxUnavailableOf(spec))),
      template,
      templateHash: status.updateRevision ?? "",
      isFirst: isOfOneRevision && !status.availableReplicas,
      isOfOneRevision,
      writtenAtMs: changedAtMs(
        managedFields.filter(({ subresource }) => subresource !== SCALE),
        rollout.isSeen,
      ),
      hold,
      partition,
      needsHold,
      ownsPartition:
        heldAtMs === undefined && isManagedBy(CONTROLLER_FIELD_MANAGER, managedFields, [PARTITION]),
    },
    revision: revisionOf(template, known.lastRollout),
    rollout,
  };
}

/**
 * When the controller last wrote to the workload whose pods it holds for a commit, in milliseconds since 1970;
 * `undefined` if it holds none, or needs no hold.
 */
function heldByControllerAtMs(
  { metadata, spec }: StatefulSet,
  lastRollout: LastRollout | undefined,
): number | undefined {
  const { type, rollingUpdate } = spec.updateStrategy ?? {};
  const partition = rollingUpdate?.partition ?? 0;
  if (type === ON_DELETE || partition < HOLD || partition >= 2 * HOLD) return undefined;
  const { managedFields, creationTimestamp } = metadata;
  // Without managed fields, the annotation shows whose partition it is.
  const holding = lastRollout?.isUnheld ? undefined : lastRollout;
  const heldAtMs = pausedByControllerAtMs(metadata, holding, PARTITION);
  // Without both, only the number does.
  const isUnknown = isUnmanaged(managedFields) && !lastRollout;
  return heldAtMs ?? (isUnknown ? parseTime(creationTimestamp) : undefined);
}

/** If nothing needs a hold, the annotation shows the commit and its start, in milliseconds since 1970. */
function committingSinceMs(lastRollout: LastRollout | undefined): number | undefined {
  return lastRollout?.isCommitting ? lastRollout.startedAtMs : undefined;
}

function partitionOf({ updateStrategy }: StatefulSet["spec"], isHeld: boolean): number | undefined {
  const { type, rollingUpdate } = updateStrategy ?? {};
  if (type === ON_DELETE) return undefined;
  return (rollingUpdate?.partition ?? 0) - (isHeld ? HOLD : 0);
}

/** The pods that the owner keeps from rollouts, by OnDelete or a partition; `undefined` if there are none. */
function holdOf(
  { replicas = 1, ordinals }: StatefulSet["spec"],
  partition: number | undefined,
): Hold | undefined {
  if (partition === undefined) {
    const message =
      "its update strategy is OnDelete, so only its owner replaces its pods: set spec.updateStrategy.type to RollingUpdate";
    return { pods: replicas, below: Number.POSITIVE_INFINITY, isOnDelete: true, message };
  }
  const pods = Math.min(partition, replicas);
  if (pods === 0) return undefined;
  const message = `${pods} of its ${replicas} pods are below the partition ${partition} of its owner, so Kubernetes does not replace them: lower spec.updateStrategy.rollingUpdate.partition`;
  return { pods, below: (ordinals?.start ?? 0) + partition, isOnDelete: false, message };
}

/**
 * A number for the template, like the revision of a Deployment. A StatefulSet shows only the names of its templates,
 * which Kubernetes reuses. So this is the number in the annotation, plus one if the owner changed the template later.
 */
function revisionOf(template: string, lastRollout: LastRollout | undefined): number {
  if (!lastRollout) return 1;
  const { revision, template: written = template } = lastRollout;
  return written === template ? revision : revision + 1;
}

/** Equal for templates that differ only in the size, because the API server writes fields in a fixed order. */
function templateIdOf(template: PodTemplate, { container, cpuLimitFollows }: Known): string {
  const { containers, ...spec } = template.spec;
  const others = containers.map(({ resources, ...each }) => {
    const isSized = each.name === container;
    return { ...each, resources: isSized ? withoutSize(resources, cpuLimitFollows) : resources };
  });
  const text = JSON.stringify({ ...template, spec: { ...spec, containers: others } });
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

function withoutSize(resources: Container["resources"] = {}, cpuLimitFollows: boolean): object {
  const { requests: amounts, limits: most, ...others } = resources;
  const { cpu: _c, memory: _m, ...requests } = amounts ?? {};
  const { cpu, memory: _l, ...limits } = most ?? {};
  return { ...others, requests, limits: cpuLimitFollows ? limits : { ...limits, cpu } };
}

/** Kubernetes sets no conditions of a StatefulSet, only counts of its pods. */
function rolloutProgressOf(statefulSet: StatefulSet, hold: Hold | undefined): RolloutProgress {
  const { metadata, spec, status = {} } = statefulSet;
  const { replicas: wanted = 1 } = spec;
  const { updatedReplicas = 0 } = status;
  const counts = countsOf(statefulSet);
  const { isAvailable, isUpdated, isSeen, replicas } = counts;
  // If the owner keeps all pods from rollouts, no rollout completes, except if every pod has the template already.
  const held = hold && hold.pods < wanted ? hold.pods : 0;
  const isAsAllowed = isSeen && held > 0 && replicas >= wanted && updatedReplicas >= wanted - held;
  return {
    ...counts,
    isComplete: (isUpdated || isAsAllowed) && isAvailable,
    isWithoutPods: isSeen && replicas === 0,
    // A StatefulSet counts these among its replicas.
    terminatingReplicas: 0,
    progressedAtS: Math.floor(changedAtMs(metadata.managedFields, isSeen) / 1000),
    // The managed fields do not show when it was scaled up.
    unavailableSinceMs: undefined,
    progressing: undefined,
    replicaFailure: undefined,
  };
}

/**
 * When the spec was last written, in milliseconds since 1970; 0 if nothing shows it. The status is no sign of progress,
 * because each crash of a pod changes it. But Kubernetes has seen the last change of the spec before it wrote the status,
 * so a later write changed only annotations.
 */
function changedAtMs(managedFields: readonly ManagedFields[] = [], isSeen: boolean): number {
  const writtenAtMs = managedAtMs(managedFields, SPEC) ?? 0;
  const status = managedFields.filter(({ subresource }) => subresource === "status");
  return isSeen && status.length > 0
    ? Math.min(writtenAtMs, ...status.map(({ time }) => parseTime(time)))
    : writtenAtMs;
}
