import type { KubeClient } from "../../kube/client.ts";
import { isCode } from "../../kube/errors.ts";
import {
  type HorizontalPodAutoscaler,
  type Identity,
  identityOf,
  type KubeObject,
  type ScaleTarget,
} from "../../kube/objects.ts";
import type { Resource } from "../../kube/paths.ts";
import { horizontalPodAutoscaler } from "../../kube/protobuf/messages.ts";

export const HORIZONTAL_AUTOSCALERS: Resource<HorizontalPodAutoscaler> = {
  apiVersion: "autoscaling/v2",
  plural: "horizontalpodautoscalers",
  message: horizontalPodAutoscaler,
};
export const VERTICAL_AUTOSCALERS: Resource<VerticalPodAutoscaler> = {
  apiVersion: "autoscaling.k8s.io/v1",
  plural: "verticalpodautoscalers",
};

/** A VerticalPodAutoscaler or HorizontalPodAutoscaler that affects the pods of a Deployment. */
export interface AutoscalerView extends KubeObject {
  readonly metadata: Identity;
  /** Vertical autoscalers replace our size with their own; horizontal ones only depend on it. */
  readonly kind: "HorizontalPodAutoscaler" | "VerticalPodAutoscaler";
  /** Name of the Deployment; `undefined` if it targets something else, or never sets our fields. */
  readonly deployment: string | undefined;
  /** By container name: true if it affects that container. {@link OTHER_CONTAINERS} stands for the rest. */
  readonly policies: ReadonlyMap<string, boolean>;
}

/** Container name of the policy for containers without their own policy. */
const OTHER_CONTAINERS = "*";

const NO_POLICIES: ReadonlyMap<string, boolean> = new Map();

export interface VerticalPodAutoscaler extends KubeObject {
  readonly spec: {
    readonly targetRef?: ScaleTarget;
    readonly updatePolicy?: { readonly updateMode?: string };
    readonly resourcePolicy?: {
      readonly containerPolicies?: readonly ContainerPolicy[];
    };
  };
}

interface ContainerPolicy {
  readonly containerName?: string;
  readonly mode?: string;
  readonly controlledResources?: readonly string[] | null;
  readonly controlledValues?: string;
}

/** Returns true for metrics that are a share of the requests; only these depend on the size. */
export function toHorizontalAutoscalerView({ metadata, spec }: HorizontalPodAutoscaler): AutoscalerView {
  const measured = spec.metrics?.flatMap((each) => each.resource ?? each.containerResource ?? []) ?? [];
  const isAboutRequests = measured.some(({ target }) => target.type === "Utilization");
  return {
    metadata: identityOf(metadata),
    kind: "HorizontalPodAutoscaler",
    deployment: isAboutRequests ? deploymentIn(spec.scaleTargetRef) : undefined,
    policies: NO_POLICIES,
  };
}

/** In update mode Off, it only recommends. */
export function toVerticalAutoscalerView({ metadata, spec }: VerticalPodAutoscaler): AutoscalerView {
  return {
    metadata: identityOf(metadata),
    kind: "VerticalPodAutoscaler",
    deployment: spec.updatePolicy?.updateMode === "Off" ? undefined : deploymentIn(spec.targetRef),
    policies: toPolicies(spec.resourcePolicy?.containerPolicies ?? []),
  };
}

function toPolicies(policies: readonly ContainerPolicy[]): AutoscalerView["policies"] {
  if (policies.length === 0) return NO_POLICIES;
  return new Map(policies.map((policy) => [policy.containerName ?? "", controlsSize(policy)]));
}

/**
 * The autoscaler always sets the request of a controlled resource. controlledValues only determines whether the limit
 * follows, so it is irrelevant here.
 */
function controlsSize({ mode, controlledResources }: ContainerPolicy): boolean {
  const resources = controlledResources ?? ["cpu", "memory"];
  return mode !== "Off" && (resources.includes("cpu") || resources.includes("memory"));
}

/** Returns true if the autoscaler affects the container, by its own policy, then the policy `*`, then the default. */
export function actsOn({ policies }: AutoscalerView, containerName: string): boolean {
  return policies.get(containerName) ?? policies.get(OTHER_CONTAINERS) ?? true;
}

function deploymentIn(target: ScaleTarget | undefined): string | undefined {
  return target?.kind === "Deployment" ? target.name : undefined;
}

/** Returns whether the CRD of VerticalPodAutoscaler, which is not part of Kubernetes, is installed. */
export async function hasVerticalAutoscalers(client: Pick<KubeClient, "json">): Promise<boolean> {
  try {
    const path = `/apis/${VERTICAL_AUTOSCALERS.apiVersion}`;
    const { resources } = await client.json<{ readonly resources: readonly { readonly name: string }[] }>({
      path,
    });
    return resources.some(({ name }) => name === VERTICAL_AUTOSCALERS.plural);
  } catch (error) {
    if (isCode(error, 404)) return false;
    throw error;
  }
}
