import { isDeepStrictEqual } from "node:util";
import { CONTROLLER_FIELD_MANAGER, GROUP } from "../../../src/crd/names.ts";
import type { FieldsV1, KubeObject, ManagedFields } from "../../../src/kube/objects.ts";
import type { Container } from "../../../src/kube/pods.ts";
import type { Deployment, StatefulSet, Workload } from "../../../src/kube/workloads.ts";
import { CONTAINER } from "./objects.ts";

interface Managed {
  readonly metadata: { readonly managedFields: readonly ManagedFields[] };
}

export type ManagedDeployment = Deployment & Managed;

/** A StatefulSet has every field of the status of a Deployment that the demo reads, and its revisions. */
export type ManagedWorkload = Workload & Managed & Pick<StatefulSet, "status">;

const RESOURCES = `spec.template.spec.containers[{"name":"${CONTAINER}"}].resources`;
const SIZE_FIELDS = [
  `${RESOURCES}.limits.memory`,
  `${RESOURCES}.requests.cpu`,
  `${RESOURCES}.requests.memory`,
] as const;
const OWN_ANNOTATION = `metadata.annotations.${GROUP}/`;

/** Returns the paths of the fields that a manager owns. */
export function ownedLeaves({ metadata: { managedFields = [] } }: KubeObject, manager: string): string[] {
  return managedFields
    .filter((entry) => entry.manager === manager)
    .flatMap((entry) => leaves(entry.fieldsV1))
    .sort();
}

function leaves(fields: FieldsV1 = {}, path = ""): string[] {
  return Object.entries(fields)
    .filter(([key]) => key !== ".")
    .flatMap(([key, below]) => {
      const here = path + step(key, path === "");
      return Object.keys(below).some((name) => name !== ".") ? leaves(below, here) : [here];
    });
}

function step(key: string, first: boolean): string {
  const name = key.slice(2);
  if (!key.startsWith("f:")) return `[${name}]`;
  return first ? name : `.${name}`;
}

/**
 * Checks in the managed fields that the controller owns only the size and its own annotations of a resized workload,
 * and that nothing else has changed.
 *
 * @returns the errors; empty if there are none
 */
export function trespasses(before: ManagedWorkload, after: ManagedWorkload): string[] {
  const { name } = after.metadata;
  const owned = ownedLeaves(after, CONTROLLER_FIELD_MANAGER);
  const beyond = owned.filter(
    (leaf) => !leaf.startsWith(OWN_ANNOTATION) && !SIZE_FIELDS.some((field) => field === leaf),
  );
  const missing = SIZE_FIELDS.filter((field) => !owned.includes(field));
  return [
    ...beyond.map((leaf) => `${name}: the controller owns ${leaf}`),
    ...missing.map((leaf) => `${name}: the controller does not own ${leaf}`),
    ...(isDeepStrictEqual(withoutOurs(before), withoutOurs(after))
      ? []
      : [`${name}: something beside the size has changed`]),
  ];
}

/** Returns the parts that the controller must not change: metadata of people, and the spec without the size. */
function withoutOurs({ metadata, spec }: ManagedWorkload): unknown {
  const { labels, annotations = {} } = metadata;
  return {
    labels,
    annotations: Object.entries(annotations).filter(
      // The Deployment controller writes the number of the ReplicaSet into this annotation.
      ([key]) => !key.startsWith(`${GROUP}/`) && key !== "deployment.kubernetes.io/revision",
    ),
    spec: {
      ...spec,
      template: {
        ...spec.template,
        spec: {
          ...spec.template.spec,
          containers: spec.template.spec.containers.map((container) =>
            container.name === CONTAINER ? { ...container, resources: otherResources(container) } : container,
          ),
        },
      },
    },
  };
}

function otherResources({ resources }: Container) {
  const { cpu: _cpu, memory: _memory, ...requests } = resources?.requests ?? {};
  const { memory: _limit, ...limits } = resources?.limits ?? {};
  return { ...resources, requests, limits };
}
