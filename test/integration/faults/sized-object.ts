import { isDeepStrictEqual } from "node:util";
import { LAST_ROLLOUT_ANNOTATION } from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { Container, PodSpec } from "../../../src/kube/pods.ts";
import { ownedLeaves } from "../../e2e/demo/ownership.ts";
import type { Kinds } from "./history.ts";

/*
 * This module reads objects without the code of the controller, because a bug there must not hide itself.
 */

/** An object that holds the size of a pipe. */
export type SizedObject = Kinds["Deployment" | "ReplicaSet" | "Pod"];

export const OUR_ANNOTATIONS: readonly string[] = [LAST_ROLLOUT_ANNOTATION];

/** The size of a container: requests of CPU and memory, and the limit of memory. */
export function sizeIn(object: SizedObject, container: string | undefined): string | undefined {
  const found = podSpecIn(object).containers.find(({ name }) => name === container);
  return found && sizeOf(found.resources);
}

/** The size in the spelling of the API server: `4 16Gi 16Gi`. */
export function sizeOf({ requests = {}, limits = {} }: Container["resources"] = {}): string {
  return `${requests["cpu"]} ${requests["memory"]} ${limits["memory"]}`;
}

function podSpecIn({ spec }: SizedObject): PodSpec {
  return "template" in spec ? spec.template.spec : spec;
}

/** True if the controller made the change. A writer that changes the value of a field becomes its only owner. */
export function isSizedByUs<T extends SizedObject>(
  before: T,
  after: T,
  container: string | undefined,
): boolean {
  if (sizeIn(before, container) === sizeIn(after, container)) return false;
  const owned = ownedLeaves(after, CONTROLLER_FIELD_MANAGER);
  return changedLeaves(before, after, container).every((leaf) => owned.includes(leaf));
}

function changedLeaves(before: SizedObject, after: SizedObject, container: string | undefined): string[] {
  const [was, is] = [before, after].map(
    (each) => podSpecIn(each).containers.find(({ name }) => name === container)?.resources,
  );
  const path = "template" in after.spec ? "spec.template.spec" : "spec";
  return [
    was?.requests?.["cpu"] === is?.requests?.["cpu"] ? [] : "requests.cpu",
    was?.requests?.["memory"] === is?.requests?.["memory"] ? [] : "requests.memory",
    was?.limits?.["memory"] === is?.limits?.["memory"] ? [] : "limits.memory",
  ]
    .flat()
    .map((leaf) => `${path}.containers[{"name":"${container}"}].resources.${leaf}`);
}

const SIZE_LEAF =
  /^spec\.(template\.spec\.)?containers\[[^\]]*\]\.resources\.(requests\.(cpu|memory)|limits\.memory)$/;

/** Fields that the controller owns beyond the size of a container, its annotations, and a pause of a Deployment. */
export function ownedBeyond(object: SizedObject): string[] {
  const others = [
    // The map itself, if it had no other annotation before.
    "metadata.annotations",
    ...OUR_ANNOTATIONS.map((each) => `metadata.annotations.${each}`),
    "spec.paused",
  ];
  return ownedLeaves(object, CONTROLLER_FIELD_MANAGER).filter(
    (leaf) => !SIZE_LEAF.test(leaf) && !others.includes(leaf),
  );
}

/** True if two versions differ only in fields that the controller may set. */
export function isSameBesideOurs<T extends SizedObject>(
  before: T,
  after: T,
  container: string | undefined,
): boolean {
  return isDeepStrictEqual(withoutOurs(before, container), withoutOurs(after, container));
}

function withoutOurs({ metadata, spec }: SizedObject, container: string | undefined): unknown {
  const annotations = Object.entries(metadata.annotations ?? {});
  return {
    labels: metadata.labels,
    annotations: annotations.filter(([name]) => !OUR_ANNOTATIONS.includes(name)),
    spec:
      "template" in spec
        ? {
            ...spec,
            paused: undefined,
            template: { ...spec.template, spec: withoutSize(spec.template.spec, container) },
          }
        : withoutSize(spec, container),
  };
}

function withoutSize(spec: PodSpec, name: string | undefined): unknown {
  const containers = spec.containers.map((container) => {
    if (container.name !== name) return container;
    const { resources } = container;
    const { cpu: _cpu, memory: _memory, ...requests } = resources?.requests ?? {};
    const { memory: _limit, ...limits } = resources?.limits ?? {};
    return { ...container, resources: { ...resources, requests, limits } };
  });
  return { ...spec, containers };
}
