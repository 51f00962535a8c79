import {
  type ContainerPolicy,
  type HorizontalPodAutoscaler,
  type Identity,
  identityOf,
  type KubeObject,
  type ScaleTarget,
  type VerticalPodAutoscaler,
} from "../../kube/objects.ts";

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
