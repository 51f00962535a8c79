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
  /** Field managers other than the installer that set fields of the spec which the installer does not own. */
  readonly editors: readonly string[];
  /** Those that share all their fields of the spec with the installer. */
  readonly sharers: readonly string[];
  readonly isPaused: boolean;
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
    ...editorsOf(metadata),
    isPaused: spec.paused ?? false,
    replicas,
    ready: status?.readyReplicas ?? 0,
    earlier: earlierPodsOf(deployment),
    isStuck:
      status?.conditions?.some((each) => each.type === "Progressing" && each.status === "False") ?? false,
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

/** Helm takes the name of its program: `helm3`, `helm-controller` of Flux, `terraform-provider-helm_v3.0.2_x5`. */
const INSTALLERS = /^(helm|terraform-provider-helm|pulumi|argocd-controller|kustomize-controller)/;

/** The installer may also be kubectl, but only if none of {@link INSTALLERS} is. */
const KUBECTL = ["kubectl", "kubectl-client-side-apply", "kubectl-create", "kubectl-replace"];

function editorsOf({
  managedFields = [],
}: KubeObject["metadata"]): Pick<Installation, "editors" | "sharers"> {
  const writers = managedFields.filter((each) => hasMore(specOf(each), []) && isByPeople(each));
  const others = othersOf([...new Set(writers.map(({ manager = "" }) => manager))]);
  const isOf = (name: string) => (each: ManagedFields) => (each.manager ?? "") === name;
  const installed = writers.filter(({ manager = "" }) => !others.includes(manager)).map(specOf);
  const isEditor = (name: string) =>
    writers.filter(isOf(name)).some((each) => hasMore(specOf(each), installed));
  return { editors: others.filter(isEditor), sharers: others.filter((name) => !isEditor(name)) };
}

/** Returns the names that are not those of the installer. */
function othersOf(names: readonly string[]): readonly string[] {
  const others = names.filter((each) => !INSTALLERS.test(each));
  if (others.length < names.length) return others;
  // Any other name may be that of the installer.
  return others.filter((each) => each.startsWith("kubectl-") && !KUBECTL.includes(each));
}

/** The writes of a HorizontalPodAutoscaler do not count: the chart omits `replicas` if there is one. */
function isByPeople({ manager, subresource }: ManagedFields): boolean {
  if (subresource === "scale") return manager !== "kube-controller-manager";
  return subresource === undefined;
}

/**
 * The fields of the spec. A pause has its own result. A change of only template metadata does not count: to restart pods,
 * `kubectl` adds an annotation there.
 */
function specOf({ fieldsV1 }: ManagedFields): FieldsV1 {
  const { "f:paused": _paused, "f:template": template, ...others } = fieldsV1?.["f:spec"] ?? {};
  const { "f:metadata": _metadata, ...ofPods } = template ?? {};
  return { ...others, ...(Object.keys(ofPods).length > 0 && { "f:template": ofPods }) };
}

/** Returns true if some field is in none of the other field sets. The key `.` stands for the parent of fields. */
function hasMore(fields: FieldsV1, others: readonly FieldsV1[]): boolean {
  return Object.entries(fields).some(([key, children]) => {
    const found = others.flatMap((each) => each[key] ?? []);
    const isField = Object.keys(children).length === 0;
    return isField ? key !== "." && found.length === 0 : hasMore(children, found);
  });
}
