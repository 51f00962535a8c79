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

/** Something else in the cluster that acts on the size of a Deployment's pods. */
export interface AutoscalerView extends KubeObject {
  readonly metadata: Identity;
  /** Vertical ones put a size of their own in the place of ours; horizontal ones only reckon with it. */
  readonly kind: "HorizontalPodAutoscaler" | "VerticalPodAutoscaler";
  /** Name of the Deployment; `undefined` if it targets something else, or never sets our fields. */
  readonly deployment: string | undefined;
  /** By container name: true if it acts on that container. {@link OTHER_CONTAINERS} stands for the rest. */
  readonly policies: ReadonlyMap<string, boolean>;
}

/** The container name of the policy for containers without a policy of their own. */
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

/** Only what it measures as a share of the requests changes with them. */
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

/** In the update mode Off it only recommends. */
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
 * A controlled resource always has its request set. controlledValues only decides whether its limit follows,
 * so it cannot make a difference here.
 */
function controlsSize({ mode, controlledResources }: ContainerPolicy): boolean {
  const resources = controlledResources ?? ["cpu", "memory"];
  return mode !== "Off" && (resources.includes("cpu") || resources.includes("memory"));
}

/** True if the autoscaler acts on the container: its own policy wins, then the policy `*`, then the default. */
export function actsOn({ policies }: AutoscalerView, containerName: string): boolean {
  return policies.get(containerName) ?? policies.get(OTHER_CONTAINERS) ?? true;
}

function deploymentIn(target: ScaleTarget | undefined): string | undefined {
  return target?.kind === "Deployment" ? target.name : undefined;
}

/** Whether the cluster knows vertical autoscalers, which are an addition to Kubernetes. */
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
