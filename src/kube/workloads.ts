import type { KubeObject, ObjectMeta } from "./objects.ts";
import type { PodSpec, PodTemplate } from "./pods.ts";

export interface DeploymentCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastUpdateTime?: string;
  readonly lastTransitionTime?: string;
}

/** The fields that Deployments and StatefulSets share. */
export interface Workload extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly minReadySeconds?: number;
    readonly template: PodTemplate;
  };
  readonly status?: {
    readonly observedGeneration?: number;
    /** Those of a StatefulSet include terminating pods. */
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
  };
}

export interface Deployment extends Workload {
  readonly spec: Workload["spec"] & {
    readonly paused?: boolean;
    readonly strategy?: {
      readonly type?: string;
      readonly rollingUpdate?: {
        readonly maxSurge?: number | string;
        readonly maxUnavailable?: number | string;
      };
    };
    /** The default is 600 s. */
    readonly progressDeadlineSeconds?: number;
  };
  readonly status?: Workload["status"] & {
    readonly terminatingReplicas?: number;
    readonly conditions?: readonly DeploymentCondition[];
  };
}

export interface StatefulSet extends Workload {
  readonly spec: Workload["spec"] & {
    readonly updateStrategy?: {
      readonly type?: string;
      readonly rollingUpdate?: {
        /** A rollout does not update pods with a smaller ordinal. */
        readonly partition?: number;
        readonly maxUnavailable?: number | string;
      };
    };
    readonly ordinals?: { readonly start?: number };
  };
  readonly status?: Workload["status"] & {
    readonly currentRevision?: string;
    readonly updateRevision?: string;
  };
}

export interface ReplicaSet extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly template: { readonly metadata?: Partial<ObjectMeta>; readonly spec: PodSpec };
  };
  readonly status?: { readonly replicas?: number; readonly observedGeneration?: number };
}
