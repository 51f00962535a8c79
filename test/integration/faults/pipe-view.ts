import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { ownedLeaves } from "../../e2e/demo/ownership.ts";
import type { Kinds } from "./history.ts";
import { isSameBesideOurs, isSizedByUs, OUR_ANNOTATIONS, sizeIn } from "./sized-object.ts";

type Deployment = Kinds["Deployment"];

/** Requests of CPU and memory and the limit of memory, in the spelling of the API server: `4 16Gi 16Gi`. */
export function sizeOfCores(cores: number): string {
  return `${cores} ${cores * 4}Gi ${cores * 4}Gi`;
}

/** Millicores and GiB in the spelling of the API server: `1500m 6Gi 6Gi`. */
export function sizeOfAmounts(millicores: number, memoryGb: number): string {
  const cpu = millicores % 1000 === 0 ? `${millicores / 1000}` : `${millicores}m`;
  return `${cpu} ${memoryGb}Gi ${memoryGb}Gi`;
}

/** The service that the Deployment is a pipe of. */
export function serviceOf({ metadata: { labels = {} } }: Deployment): string | undefined {
  return labels[TYPE_LABEL] === DATABASE_TYPE ? labels[SERVICE_LABEL] : undefined;
}

/** Name of the container of the pipe: that in the annotation, or the only one. */
export function pipeContainer({ metadata, spec }: Deployment): string | undefined {
  const names = spec.template.spec.containers.map((each) => each.name);
  const named = metadata.annotations?.[CONTAINER_ANNOTATION];
  if (named !== undefined) return names.find((name) => name === named);
  return names.length === 1 ? names[0] : undefined;
}

export function replicasOf({ spec }: Deployment): number {
  return spec.replicas ?? 1;
}

/**
 * True if every replica runs the current template and is available. Conditions do not count, because they can be left
 * over from an earlier rollout.
 */
export function isRolledOut(deployment: Deployment): boolean {
  const { metadata, status = {} } = deployment;
  const wanted = replicasOf(deployment);
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  return (
    observedGeneration >= (metadata.generation ?? 0) &&
    replicas === updatedReplicas &&
    updatedReplicas >= wanted &&
    availableReplicas >= wanted
  );
}

/** True if the Deployment controller reports a complete rollout. For histories with missing versions. */
export function saysRolledOut({ status }: Deployment): boolean {
  return status?.conditions?.some((each) => each.reason === "NewReplicaSetAvailable") ?? false;
}

export function hasOurAnnotation({ metadata }: Deployment): boolean {
  return OUR_ANNOTATIONS.some((each) => metadata.annotations?.[each] !== undefined);
}

/** True if the controller wrote the later version, which shows in the fields that it owns. */
export function isOurWrite(before: Deployment, after: Deployment): boolean {
  const owned = ownedLeaves(after, CONTROLLER_FIELD_MANAGER);
  const ownedBefore = ownedLeaves(before, CONTROLLER_FIELD_MANAGER);
  // If another writer becomes the owner of the fields of a map, the map itself is left.
  const isNew = (leaf: string) =>
    !ownedBefore.some((each) => each === leaf || each.startsWith(`${leaf}.`) || each.startsWith(`${leaf}[`));
  if (owned.some(isNew)) return true;
  const isChanged = (annotation: string) =>
    before.metadata.annotations?.[annotation] !== after.metadata.annotations?.[annotation];
  const ownsAnnotation = (annotation: string) => owned.includes(`metadata.annotations.${annotation}`);
  return (
    OUR_ANNOTATIONS.some((each) => isChanged(each) && ownsAnnotation(each)) ||
    isSizedByUs(before, after, pipeContainer(before)) ||
    isResumedByUs(before, after)
  );
}

/** A removed field has no owner that shows who removed it. Other writers in tests also change another field. */
export function isResumedByUs(before: Deployment, after: Deployment): boolean {
  if (before.spec.paused !== true || after.spec.paused === true) return false;
  const container = pipeContainer(before);
  return sizeIn(before, container) === sizeIn(after, container) && isSameBesideOurs(before, after, container);
}

/** True if the controller alone set `spec.paused`. */
export function isPausedForCommit({ metadata, spec }: Deployment): boolean {
  if (spec.paused !== true) return false;
  const managers = new Set((metadata.managedFields ?? []).map(({ manager = "" }) => manager));
  const owners = [...managers].filter((each) => ownedLeaves({ metadata }, each).includes("spec.paused"));
  return owners.length === 1 && owners[0] === CONTROLLER_FIELD_MANAGER;
}

/** Like `isPausedForCommit`, and true if the writer of the pause is unknown because the object has no managed fields. */
export function mayBePausedForCommit(deployment: Deployment): boolean {
  const { metadata, spec } = deployment;
  const isUnknown = spec.paused === true && (metadata.managedFields ?? []).length === 0;
  return isUnknown || isPausedForCommit(deployment);
}
