import type { KubeObject } from "./objects.ts";

export interface ScaleTarget {
  readonly kind: string;
  readonly name: string;
}

export interface HorizontalPodAutoscaler extends KubeObject {
  readonly spec: {
    readonly scaleTargetRef: ScaleTarget;
    readonly metrics?: readonly {
      readonly resource?: ResourceMetric;
      readonly containerResource?: ContainerResourceMetric;
    }[];
  };
}

export interface ResourceMetric {
  readonly target: { readonly type: string };
}

/** Measures one container of each pod. */
export interface ContainerResourceMetric extends ResourceMetric {
  readonly container: string;
}

/** Not part of Kubernetes: its CRD may be missing. */
export interface VerticalPodAutoscaler extends KubeObject {
  readonly spec: {
    readonly targetRef?: ScaleTarget;
    readonly updatePolicy?: { readonly updateMode?: string };
    readonly resourcePolicy?: {
      readonly containerPolicies?: readonly ContainerPolicy[];
    };
    readonly startupBoost?: StartupBoost;
  };
}

/** More CPU for pods until they are ready, and for a while after that. */
export interface StartupBoost {
  readonly cpu?: { readonly type?: string; readonly factor?: number };
}

export interface ContainerPolicy {
  readonly containerName?: string;
  readonly mode?: string;
  readonly controlledResources?: readonly string[] | null;
  readonly controlledValues?: string;
  readonly startupBoost?: StartupBoost;
}
