import type { KubeClient } from "../../kube/client.ts";
import { isCode } from "../../kube/errors.ts";
import { type Identity, identityOf, type KubeObject } from "../../kube/objects.ts";
import type { Resource } from "../../kube/paths.ts";

export const HORIZONTAL_AUTOSCALERS: Resource = {
  apiVersion: "autoscaling/v2",
  plural: "horizontalpodautoscalers",
};
export const VERTICAL_AUTOSCALERS: Resource = {
  apiVersion: "autoscaling.k8s.io/v1",
  plural: "verticalpodautoscalers",
};

/** Something else in the cluster that acts on the size of a Deployment's pods. */
export interface AutoscalerView extends KubeObject {
  readonly metadata: Identity;
  /** Vertical ones put a size of their own in the place of ours; horizontal ones only reckon with it. */
  readonly kind: "HorizontalPodAutoscaler" | "VerticalPodAutoscaler";
  /** Name of the Deployment; `undefined` if it is about something else, or does nothing to our fields. */
  readonly deployment: string | undefined;
  /** Containers that it leaves alone. */
  readonly exempt: readonly string[];
}

interface Target {
  readonly kind: string;
  readonly name: string;
}

interface HorizontalPodAutoscaler extends KubeObject {
  readonly spec: {
    readonly scaleTargetRef: Target;
    readonly metrics?: readonly {
      readonly resource?: ResourceMetric;
      readonly containerResource?: ResourceMetric;
    }[];
  };
}

interface ResourceMetric {
  readonly target: { readonly type: string };
}

export interface VerticalPodAutoscaler extends KubeObject {
  readonly spec: {
    readonly targetRef?: Target;
    readonly updatePolicy?: { readonly updateMode?: string };
    readonly resourcePolicy?: {
      readonly containerPolicies?: readonly { readonly containerName?: string; readonly mode?: string }[];
    };
  };
}

/** Only what it measures as a share of the requests changes with them. */
export function toHorizontalAutoscalerView({ metadata, spec }: HorizontalPodAutoscaler): AutoscalerView {
  const measured = spec.metrics?.flatMap((each) => each.resource ?? each.containerResource ?? []) ?? [];
  const isAboutRequests = measured.some(({ target }) => target.type === "Utilization");
  return {
    metadata: identityOf(metadata),
    kind: "HorizontalPodAutoscaler",
    deployment: isAboutRequests ? deploymentIn(spec.scaleTargetRef) : undefined,
    exempt: [],
  };
}

/** In the mode Off it only recommends. */
export function toVerticalAutoscalerView({ metadata, spec }: VerticalPodAutoscaler): AutoscalerView {
  const policies = spec.resourcePolicy?.containerPolicies ?? [];
  return {
    metadata: identityOf(metadata),
    kind: "VerticalPodAutoscaler",
    deployment: spec.updatePolicy?.updateMode === "Off" ? undefined : deploymentIn(spec.targetRef),
    exempt: policies.flatMap(({ containerName, mode }) => (mode === "Off" ? (containerName ?? []) : [])),
  };
}

function deploymentIn(target: Target | undefined): string | undefined {
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
