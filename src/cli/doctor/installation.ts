import { posix } from "node:path";
import type { V1DeploymentSpec, V1DeploymentStatus, V1PodSpec, V1Volume } from "@kubernetes/client-node";
import { RESIZE_STRATEGIES, type ResizeStrategy } from "../../domain/resize-strategy.ts";
import type { FieldsV1, KubeObject, ManagedFields } from "../../kube/objects.ts";
import { DEFAULT_RECORDS_NAMESPACE } from "../../settings/cluster.ts";

export type Component = "api" | "controller";

/** A Deployment of one of the processes, as the chart creates it. */
export interface Installation {
  readonly component: Component;
  readonly namespace: string;
  readonly name: string;
  /** Name of the ServiceAccount. */
  readonly account: string;
  /** Namespace of the records. */
  readonly records: string;
  /** Namespaces in which it looks for pipes; empty for all. */
  readonly pipeNamespaces: readonly string[];
  /** The chart created admission policies with it. */
  readonly hasPolicies: boolean;
  /** Field managers that changed the spec of the Deployment and are not its installer. */
  readonly editors: readonly string[];
  readonly replicas: number;
  readonly ready: number;
  /** Number of pods with an earlier template, which a rollout has yet to replace. */
  readonly earlier: number;
  /** Kubernetes says that the rollout does not proceed. */
  readonly isStuck: boolean;
  readonly version: string | undefined;
  /** Strategy of the controller for a PipeScaling without its own; `undefined` if the Deployment sets none. */
  readonly resizeStrategy: ResizeStrategy | undefined;
  readonly toleratedResizers: readonly string[];
  /** Cores of the largest size that can be requested. */
  readonly maximumCores: number | undefined;
  /** Name of the ConfigMap with its tiers. */
  readonly tiers: string | undefined;
  /** SHA-256 of the tiers in the values of the chart. */
  readonly tiersChecksum: string | undefined;
  /** Name of the Secret with its certificate; `undefined` without TLS. */
  readonly tlsSecret: string | undefined;
  /** The holder identity in the Lease begins with the name of the pod. */
  readonly isNamedAfterPod: boolean;
  /** The process authenticates clients of its metrics by token. */
  readonly reviewsTokens: boolean;
}

export const COMPONENT_LABEL = "app.kubernetes.io/component";
const PART_OF_LABEL = "app.kubernetes.io/part-of";
const VERSION_LABEL = "app.kubernetes.io/version";
/** On the Deployment of the controller, so that deleted policies are not taken for admissionPolicies.create=false. */
const POLICIES_ANNOTATION = "pipes.clouddb.dev/admission-policies";
const PRODUCT = "pipe-scaling-operator";
/** Selects everything that the chart makes. */
export const OF_PRODUCT = `${PART_OF_LABEL}=${PRODUCT}`;

export interface ProcessDeployment extends KubeObject {
  readonly spec: V1DeploymentSpec;
  readonly status?: V1DeploymentStatus;
}

/** `undefined` for a Deployment of another product. */
export function installationOf(deployment: ProcessDeployment): Installation | undefined {
  const { metadata, spec, status } = deployment;
  const { template, replicas = 1 } = spec;
  const component = metadata.labels?.[COMPONENT_LABEL];
  if (template.metadata?.labels?.[PART_OF_LABEL] !== PRODUCT) return undefined;
  if (component !== "api" && component !== "controller") return undefined;
  const { containers = [], serviceAccountName = "default" } = template.spec ?? {};
  // The values of the chart can add containers.
  const env = containers.find(({ name }) => name === component)?.env;
  const variable = (name: string) => env?.find((each) => each.name === name)?.value || undefined;
  /** Blanks around the values have no effect on the process. */
  const listIn = (name: string) =>
    variable(name)
      ?.split(",")
      .map((each) => each.trim()) ?? [];
  const volumeOf = (name: string) => volumeWith(variable(name), template.spec);
  return {
    component,
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    account: serviceAccountName,
    hasPolicies: metadata.annotations?.[POLICIES_ANNOTATION] === "true",
    records: variable("PIPE_SCALING_NAMESPACE") ?? DEFAULT_RECORDS_NAMESPACE,
    pipeNamespaces: listIn("PIPE_SCALING_PIPE_NAMESPACES"),
    resizeStrategy: RESIZE_STRATEGIES.find((each) => each === variable("PIPE_SCALING_RESIZE_STRATEGY")),
    toleratedResizers: listIn("PIPE_SCALING_TOLERATED_RESIZERS"),
    maximumCores: Number(variable("PIPE_SCALING_MAXIMUM_CORES")) || undefined,
    tiers: volumeOf("PIPE_SCALING_TIERS_FILE")?.configMap?.name,
    tiersChecksum: template.metadata?.annotations?.["checksum/tiers"],
    tlsSecret: volumeOf("PIPE_SCALING_TLS_CERT")?.secret?.secretName,
    isNamedAfterPod:
      variable("PIPE_SCALING_IDENTITY") === undefined &&
      !containers.some(({ args = [] }) => args.some((each) => /^--identity\b/.test(each))),
    reviewsTokens: variable("PIPE_SCALING_METRICS_AUTHENTICATION") === "true",
    editors: editorsOf(metadata),
    replicas,
    ready: status?.readyReplicas ?? 0,
    earlier: earlierPodsOf(deployment),
    isStuck: status?.conditions?.some((each) => each.type === "Progressing" && each.status === "False") ?? false,
    version: metadata.labels?.[VERSION_LABEL],
  };
}

/** The status counts the pods of the newest template that Kubernetes has seen. */
function earlierPodsOf({ metadata, status = {} }: ProcessDeployment): number {
  const { observedGeneration = 0, replicas = 0, updatedReplicas = 0 } = status;
  return observedGeneration < (metadata.generation ?? 0) ? replicas : replicas - updatedReplicas;
}

/** The volume in which a container finds this file. */
function volumeWith(file: string | undefined, spec: V1PodSpec | undefined): V1Volume | undefined {
  const mounts = spec?.containers.flatMap(({ volumeMounts = [] }) => volumeMounts) ?? [];
  const mount = mounts.find(({ mountPath }) => file !== undefined && mountPath === posix.dirname(file));
  return spec?.volumes?.find(({ name }) => name === mount?.name);
}

const INSTALLERS = ["helm", "argocd-controller", "helm-controller", "kustomize-controller"];

/** The installer may also be kubectl, but only if none of {@link INSTALLERS} is. */
const KUBECTL = ["kubectl", "kubectl-client-side-apply", "kubectl-create", "kubectl-replace"];

function editorsOf({ managedFields = [] }: KubeObject["metadata"]): readonly string[] {
  const writers = managedFields.filter((each) => isOfSpec(each.fieldsV1) && isByPeople(each));
  const names = [...new Set(writers.map(({ manager = "" }) => manager))];
  const editors = names.filter((each) => !INSTALLERS.includes(each));
  if (editors.length < names.length) return editors;
  // A single field manager is the installer, even if its name is unknown.
  return names.length < 2 ? [] : editors.filter((each) => !KUBECTL.includes(each));
}

/** The writes of a HorizontalPodAutoscaler do not count: the chart omits `replicas` if there is one. */
function isByPeople({ manager, subresource }: ManagedFields): boolean {
  if (subresource === "scale") return manager !== "kube-controller-manager";
  return subresource === undefined;
}

/** A change of only template metadata does not count: to restart pods, `kubectl` adds an annotation there. */
function isOfSpec({ "f:spec": spec }: FieldsV1 = {}): boolean {
  const { "f:template": template, ...others } = spec ?? {};
  return Object.keys(others).length > 0 || Object.keys(template ?? {}).some((key) => key !== "f:metadata");
}
