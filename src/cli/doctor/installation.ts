import type { V1DeploymentSpec, V1DeploymentStatus } from "@kubernetes/client-node";
import { RESIZE_STRATEGIES, type ResizeStrategy } from "../../domain/resize-strategy.ts";
import type { KubeObject } from "../../kube/objects.ts";
import { DEFAULT_RECORDS_NAMESPACE } from "../../settings/cluster.ts";

export type Component = "api" | "controller";

/** A Deployment of one of the processes, as the chart makes it. */
export interface Installation {
  readonly component: Component;
  readonly namespace: string;
  readonly name: string;
  /** Its ServiceAccount. */
  readonly account: string;
  /** Namespace of its records. */
  readonly records: string;
  /** Namespaces in which it looks for pipes; empty for all. */
  readonly pipeNamespaces: readonly string[];
  readonly replicas: number;
  readonly ready: number;
  readonly version: string | undefined;
  /** How it resizes pipes of a PipeScaling without a strategy. */
  readonly resizeStrategy: ResizeStrategy | undefined;
  /** It checks the tokens of clients of its metrics. */
  readonly reviewsTokens: boolean;
}

export const COMPONENT_LABEL = "app.kubernetes.io/component";
const PART_OF_LABEL = "app.kubernetes.io/part-of";
const VERSION_LABEL = "app.kubernetes.io/version";
const PRODUCT = "pipe-scaling-operator";
/** Selects everything that the chart makes. */
export const OF_PRODUCT = `${PART_OF_LABEL}=${PRODUCT}`;

export interface ProcessDeployment extends KubeObject {
  readonly spec: V1DeploymentSpec;
  readonly status?: V1DeploymentStatus;
}

/** `undefined` for a Deployment of another product. */
export function installationOf({ metadata, spec, status }: ProcessDeployment): Installation | undefined {
  const { template, replicas = 1 } = spec;
  const component = metadata.labels?.[COMPONENT_LABEL];
  if (template.metadata?.labels?.[PART_OF_LABEL] !== PRODUCT) return undefined;
  if (component !== "api" && component !== "controller") return undefined;
  const { containers = [], serviceAccountName = "default" } = template.spec ?? {};
  // The values of the chart can add containers.
  const env = containers.find(({ name }) => name === component)?.env;
  const variable = (name: string) => env?.find((each) => each.name === name)?.value || undefined;
  return {
    component,
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    account: serviceAccountName,
    records: variable("PIPE_SCALING_NAMESPACE") ?? DEFAULT_RECORDS_NAMESPACE,
    pipeNamespaces: variable("PIPE_SCALING_PIPE_NAMESPACES")?.split(",") ?? [],
    resizeStrategy: RESIZE_STRATEGIES.find((each) => each === variable("PIPE_SCALING_RESIZE_STRATEGY")),
    reviewsTokens: variable("PIPE_SCALING_METRICS_AUTHENTICATION") === "true",
    replicas,
    ready: status?.readyReplicas ?? 0,
    version: metadata.labels?.[VERSION_LABEL],
  };
}
