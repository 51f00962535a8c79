import { parseQuantity } from "../../../domain/quantity.ts";
import { shared } from "../../../kube/memoized.ts";
import { identityOf, isBeingDeleted } from "../../../kube/objects.ts";
import type { Container, PodTemplate, TemplateContainer } from "../../../kube/pods.ts";
import { parseTime } from "../../../kube/time.ts";
import type { Workload } from "../../../kube/workloads.ts";
import { CONTAINER_ANNOTATION, DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../names.ts";
import type { Fallback, LastRollout } from "../last-rollout.ts";
import type { PipeView } from "../pipe-view.ts";
import { otherFormOf, resourcesOf, sizeOf } from "../resources.ts";
import {
  cpuLimitFollows,
  earlierResizeAtMs,
  labeledAtMs,
  otherManagersOf,
  ownLastRollout,
  ownsSize,
} from "./field-owners.ts";
import { startupReadsOf } from "./startup-reads.ts";

/** The fields that each kind of workload shows in its own way. */
export interface OfKind
  extends Pick<
    PipeView,
    | "kind"
    | "deadlineMs"
    | "minReadyMs"
    | "isPaused"
    | "pausedForCommitAtMs"
    | "stopsOldPodsFirst"
    | "inTurn"
    | "revision"
    | "rollout"
  > {}

/** Facts about a workload that are read in the same way for all kinds. */
export interface Known {
  readonly lastRollout: LastRollout | undefined;
  /** Name of the container to resize, if it can be determined. */
  readonly container: string | undefined;
  readonly cpuLimitFollows: boolean;
}

export function workloadView<T extends Workload>(
  workload: T,
  ofKind: (workload: T, known: Known) => OfKind,
): PipeView {
  const { metadata, spec } = workload;
  const { annotations = {}, managedFields } = metadata;
  const chosen = chooseContainer(spec.template, annotations[CONTAINER_ANNOTATION]);
  const container = "problem" in chosen ? undefined : chosen;
  const { containers } = spec.template.spec;
  const size = container && sizeOf(container);
  const limitFollows = cpuLimitFollows(container, managedFields);
  const lastRollout = ownLastRollout(metadata);
  const { [TYPE_LABEL]: type, [SERVICE_LABEL]: service = "" } = metadata.labels ?? {};
  const serviceId = shared(type === DATABASE_TYPE ? service : "");
  const own = ofKind(workload, { lastRollout, container: container?.name, cpuLimitFollows: limitFollows });
  // Objects with the same properties in the same order take the least memory, so none is left out.
  return {
    kind: own.kind,
    metadata: identityOf(metadata),
    serviceId,
    createdAtMs: parseTime(metadata.creationTimestamp),
    labeledAtMs: labeledAtMs(metadata),
    isBeingDeleted: isBeingDeleted(metadata),
    container: shared(
      "problem" in chosen ? { ...chosen, resources: containers.map(resourcesOf) } : { name: chosen.name },
    ),
    size,
    otherResources: container && !size ? resourcesOf(container) : undefined,
    otherForm: container && size ? shared(otherFormOf(container, size)) : undefined,
    cpuLimitFollows: limitFollows,
    cpuLimitMillicores: container && !limitFollows ? cpuLimitMillicores(container) : undefined,
    otherManagers: otherManagersOf(container?.name, managedFields),
    ownsSize: ownsSize(container, managedFields, limitFollows),
    replicas: spec.replicas ?? 1,
    hasLabelledPods: spec.template.metadata?.labels?.[TYPE_LABEL] === DATABASE_TYPE,
    templateProblem: container && podTemplateProblem(spec.template, serviceId, container.name),
    startupReads: startupReadsOf(spec.template, container, limitFollows),
    deadlineMs: own.deadlineMs,
    minReadyMs: own.minReadyMs,
    isPaused: own.isPaused,
    isPausedForCommit: own.pausedForCommitAtMs !== undefined,
    pausedForCommitAtMs: own.pausedForCommitAtMs,
    stopsOldPodsFirst: own.stopsOldPodsFirst,
    inTurn: own.inTurn,
    revision: own.revision,
    rollout: own.rollout,
    lastRollout,
    resizedAtMs: lastRollout ? undefined : earlierResizeAtMs(container?.name, metadata),
  };
}

/** The progress that the counts of pods show, for all kinds in the same way. */
export function countsOf({ metadata, spec, status = {} }: Workload) {
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  const wanted = spec.replicas ?? 1;
  const isSeen = observedGeneration >= (metadata.generation ?? 0);
  return {
    isAvailable: availableReplicas >= wanted,
    isAnyAvailable: availableReplicas > 0,
    isUpdated: isSeen && replicas === updatedReplicas && replicas >= wanted,
    isSeen,
    replicas,
  };
}

function cpuLimitMillicores({ resources }: Container): number | undefined {
  const cpuLimit = parseQuantity(resources?.limits?.["cpu"] ?? "");
  return cpuLimit === undefined ? undefined : Number(cpuLimit / 1_000_000n);
}

/** The container to resize, or the reason why it cannot be determined. @param named value of CONTAINER_ANNOTATION */
export function chooseContainer(
  { spec: { containers } }: PodTemplate,
  named: string | undefined,
): TemplateContainer | { readonly problem: string } {
  const [first, second] = containers;
  const chosen = named === undefined && !second ? first : containers.find(({ name }) => name === named);
  if (chosen) return chosen;
  const names = containers.map(({ name }) => name).join(", ");
  return {
    problem:
      named === undefined
        ? `it has the containers ${names}: set the annotation ${CONTAINER_ANNOTATION} to the container to resize`
        : `the annotation ${CONTAINER_ANNOTATION} names "${named}"; its containers are ${names}`,
  };
}

/**
 * The admission policies of the chart allow a resize only of pods and ReplicaSets with the labels of a pipe, and only
 * of the container that their annotation names, or of their only one.
 *
 * @returns `undefined` if the pods may be resized in place
 */
export function podTemplateProblem(
  template: PodTemplate,
  serviceId: string,
  container: string,
): Fallback | undefined {
  const { labels = {}, annotations = {} } = template.metadata ?? {};
  const required = { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: DATABASE_TYPE };
  const missing = Object.entries(required).filter(([key, value]) => labels[key] !== value);
  if (missing.length > 0) {
    const names = missing.map(([key, value]) => `${key}=${value}`).join(" and ");
    return { reason: "PodsNotLabeled", message: `its pod template does not have the label ${names}` };
  }
  const named = chooseContainer(template, annotations[CONTAINER_ANNOTATION]);
  if ("name" in named && named.name === container) return undefined;
  const message = `its pod template does not have the annotation ${CONTAINER_ANNOTATION}=${container}`;
  return { reason: "ContainerNotNamed", message };
}
