import { createHash } from "node:crypto";
import {
  type Container,
  type Identity,
  identityOf,
  type KubeObject,
  type PodTemplate,
  type ReplicaSet,
} from "../../kube/objects.ts";
import { parseTime } from "../../kube/time.ts";
import { REVISION_ANNOTATION, TEMPLATE_HASH_LABEL } from "../names.ts";

/** The fields of a ReplicaSet that in-place resizes need. */
export interface ReplicaSetView extends KubeObject, TemplateView {
  readonly metadata: Identity;
  /** UID of its Deployment. */
  readonly deploymentUid: string | undefined;
  /** In whole seconds since 1970, as Kubernetes compares them. */
  readonly createdAtS: number;
  readonly revision: number;
  /** Pods that it has or wants. */
  readonly pods: number;
}

export function toReplicaSetView({ metadata, spec, status }: ReplicaSet): ReplicaSetView {
  return {
    metadata: identityOf(metadata),
    deploymentUid: metadata.ownerReferences?.find(({ kind }) => kind === "Deployment")?.uid,
    createdAtS: Math.floor(parseTime(metadata.creationTimestamp) / 1000),
    revision: Number.parseInt(metadata.annotations?.[REVISION_ANNOTATION] ?? "", 10) || 0,
    pods: Math.max(spec.replicas ?? 1, status?.replicas ?? 0),
    ...toTemplateView(spec.template),
  };
}

/** A pod template, reduced to what shows whether another one is the same. */
export interface TemplateView {
  /** Resources of each container, by name. */
  readonly resources: ReadonlyMap<string, Container["resources"]>;
  /** Equal for templates that differ only in resources. */
  readonly templateHash: string;
}

export function toTemplateView(template: PodTemplate): TemplateView {
  return {
    resources: new Map(template.spec.containers.map(({ name, resources }) => [name, resources])),
    templateHash: hashWithoutResources(template),
  };
}

/** Kubernetes compares whole templates, the resources of other containers included. */
export function isSameTemplate(a: TemplateView, b: TemplateView, container: string): boolean {
  if (a.templateHash !== b.templateHash) return false;
  const others = ({ resources }: TemplateView) =>
    JSON.stringify([...resources].filter(([name]) => name !== container));
  return others(a) === others(b);
}

/** The API server writes the fields of an object in one order, so equal templates are equal texts. */
function hashWithoutResources({ metadata, spec }: PodTemplate): string {
  const labels = Object.entries(metadata?.labels ?? {}).filter(([name]) => name !== TEMPLATE_HASH_LABEL);
  const containers = spec.containers.map(({ resources: _, ...rest }) => rest);
  const text = JSON.stringify([
    { ...metadata, labels },
    { ...spec, containers },
  ]);
  return createHash("sha256").update(text).digest("base64");
}
