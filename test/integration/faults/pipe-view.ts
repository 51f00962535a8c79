import { isDeepStrictEqual } from "node:util";
import {
  CONTAINER_ANNOTATION,
  DATABASE_TYPE,
  LAST_ROLLOUT_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { Container } from "../../../src/kube/objects.ts";
import { ownedLeaves } from "../../e2e/demo/ownership.ts";
import type { Kinds } from "./history.ts";

/*
 * Reads a Deployment by rules of its own. With the code of the controller, a bug in that code would hide itself.
 */

type Deployment = Kinds["Deployment"];

const OUR_ANNOTATIONS = [LAST_ROLLOUT_ANNOTATION];

/** Requests of CPU and memory and the limit of memory, as the API server spells them: `4 16Gi 16Gi`. */
export function sizeOfCores(cores: number): string {
  return `${cores} ${cores * 4}Gi ${cores * 4}Gi`;
}

function sizeOf({ resources: { requests = {}, limits = {} } = {} }: Container): string {
  return `${requests["cpu"]} ${requests["memory"]} ${limits["memory"]}`;
}

/** The service that the Deployment is a pipe of. */
export function serviceOf({ metadata: { labels = {} } }: Deployment): string | undefined {
  return labels[TYPE_LABEL] === DATABASE_TYPE ? labels[SERVICE_LABEL] : undefined;
}

/** Name of the container to size: the one that is named, or the only one. */
export function pipeContainer({ metadata, spec }: Deployment): string | undefined {
  const names = spec.template.spec.containers.map((each) => each.name);
  const named = metadata.annotations?.[CONTAINER_ANNOTATION];
  if (named !== undefined) return names.find((name) => name === named);
  return names.length === 1 ? names[0] : undefined;
}

export function sizeIn(
  template: Deployment["spec"]["template"],
  container: string | undefined,
): string | undefined {
  const found = template.spec.containers.find(({ name }) => name === container);
  return found && sizeOf(found);
}

export function replicasOf({ spec }: Deployment): number {
  return spec.replicas ?? 1;
}

/**
 * Every replica runs the current template and is available. Conditions do not count, because they may be left from
 * an earlier rollout.
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

/** The Deployment controller's own word, for who has not seen all versions. */
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
  // If another writer takes the fields of a map, the map itself is left.
  const isNew = (leaf: string) =>
    !ownedBefore.some((each) => each === leaf || each.startsWith(`${leaf}.`) || each.startsWith(`${leaf}[`));
  if (owned.some(isNew)) return true;
  const isChanged = (annotation: string) =>
    before.metadata.annotations?.[annotation] !== after.metadata.annotations?.[annotation];
  const ownsAnnotation = (annotation: string) => owned.includes(`metadata.annotations.${annotation}`);
  return (
    OUR_ANNOTATIONS.some((each) => isChanged(each) && ownsAnnotation(each)) || isSizedByUs(before, after)
  );
}

/** A writer that changes the value of a field becomes its only owner. */
export function isSizedByUs(before: Deployment, after: Deployment): boolean {
  const container = pipeContainer(before);
  if (sizeIn(before.spec.template, container) === sizeIn(after.spec.template, container)) return false;
  const owned = ownedLeaves(after, CONTROLLER_FIELD_MANAGER);
  return changedLeaves(before, after, container).every((leaf) => owned.includes(leaf));
}

function changedLeaves(before: Deployment, after: Deployment, container: string | undefined): string[] {
  const [was, is] = [before, after].map(
    (each) => each.spec.template.spec.containers.find(({ name }) => name === container)?.resources,
  );
  return [
    was?.requests?.["cpu"] === is?.requests?.["cpu"] ? [] : "requests.cpu",
    was?.requests?.["memory"] === is?.requests?.["memory"] ? [] : "requests.memory",
    was?.limits?.["memory"] === is?.limits?.["memory"] ? [] : "limits.memory",
  ]
    .flat()
    .map((leaf) => `spec.template.spec.containers[{"name":"${container}"}].resources.${leaf}`);
}

/** Fields that the controller owns beyond the size of a container and its annotations. */
export function ownedBeyond(deployment: Deployment): string[] {
  const size =
    /^spec\.template\.spec\.containers\[[^\]]*\]\.resources\.(requests\.(cpu|memory)|limits\.memory)$/;
  // The map itself, if it had no other annotation before.
  const annotations = [
    "metadata.annotations",
    ...OUR_ANNOTATIONS.map((each) => `metadata.annotations.${each}`),
  ];
  return ownedLeaves(deployment, CONTROLLER_FIELD_MANAGER).filter(
    (leaf) => !size.test(leaf) && !annotations.includes(leaf),
  );
}

/** True if two versions differ only in fields that the controller may set. */
export function isSameBesideOurs(before: Deployment, after: Deployment): boolean {
  const container = pipeContainer(before);
  return isDeepStrictEqual(withoutOurs(before, container), withoutOurs(after, container));
}

function withoutOurs({ metadata, spec }: Deployment, container: string | undefined): unknown {
  const annotations = Object.entries(metadata.annotations ?? {});
  return {
    labels: metadata.labels,
    annotations: annotations.filter(([name]) => !OUR_ANNOTATIONS.includes(name)),
    spec: {
      ...spec,
      template: {
        ...spec.template,
        spec: {
          ...spec.template.spec,
          containers: spec.template.spec.containers.map((each) =>
            each.name === container ? withoutSize(each) : each,
          ),
        },
      },
    },
  };
}

function withoutSize({ resources, ...container }: Container): unknown {
  const { cpu: _cpu, memory: _memory, ...requests } = resources?.requests ?? {};
  const { memory: _limit, ...limits } = resources?.limits ?? {};
  return { ...container, resources: { ...resources, requests, limits } };
}
