/**
 * The fields of Kubernetes objects that this project reads, in their JSON format. The types of the client library do
 * not fit, because they represent dates as Date objects. Responses are not validated, because the API server validates
 * objects before it stores them.
 */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly {
    readonly kind: string;
    readonly name: string;
    readonly uid: string;
  }[];
  readonly managedFields?: readonly ManagedFields[];
}

/** The fields that one writer of the object owns. */
export interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  /** When the writer last changed one of its fields. */
  readonly time?: string;
  readonly fieldsV1?: FieldsV1;
}

/** A tree of fields: `f:name` for a property, `k:{…}` for the list item with these keys. */
export interface FieldsV1 {
  readonly [field: string]: FieldsV1;
}

/** Identifies an object and its version; caches drop the rest of the metadata. */
export type Identity = Pick<ObjectMeta, "name" | "uid" | "resourceVersion"> & {
  readonly namespace: string;
  readonly generation: number;
};

export function identityOf({
  name,
  namespace = "",
  uid,
  resourceVersion,
  generation = 0,
}: ObjectMeta): Identity {
  return { name, namespace, uid, resourceVersion, generation };
}

export interface KubeObject {
  readonly metadata: ObjectMeta;
}

export interface ConfigMap extends KubeObject {
  readonly data?: Readonly<Record<string, string>>;
}

export interface Secret extends KubeObject {
  readonly type?: string;
  /** Values in base64. */
  readonly data?: Readonly<Record<string, string>>;
}

export interface Container {
  readonly name: string;
  readonly resources?: {
    readonly requests?: Readonly<Record<string, string>>;
    readonly limits?: Readonly<Record<string, string>>;
  };
}

/** A container in a pod template. */
export interface TemplateContainer extends Container {
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvVar[];
}

export interface EnvVar {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly resourceFieldRef?: ResourceFieldRef };
}

/** An amount of a container, by default of the one with the variable. */
export interface ResourceFieldRef {
  readonly containerName?: string;
  readonly resource: string;
}

export interface PodSpec {
  readonly containers: readonly TemplateContainer[];
  /** With `restartPolicy: Always`, this is a sidecar, which runs beside the containers. */
  readonly initContainers?: readonly (TemplateContainer & { readonly restartPolicy?: string })[];
  /** Pod-level requests and limits. */
  readonly resources?: Container["resources"];
  readonly overhead?: Readonly<Record<string, string>>;
  readonly runtimeClassName?: string;
  readonly nodeName?: string;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly Toleration[];
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: {
        readonly nodeSelectorTerms: readonly NodeSelectorTerm[];
      };
    };
  };
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeSelectorRequirement[];
  readonly matchFields?: readonly NodeSelectorRequirement[];
}

export interface NodeSelectorRequirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  readonly values?: readonly string[];
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface Node extends KubeObject {
  readonly spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  readonly status?: { readonly allocatable?: Readonly<Record<string, string>> };
}

export interface DeploymentCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastUpdateTime?: string;
  readonly lastTransitionTime?: string;
}

/** A workload that keeps pods of one template, of any kind. */
export interface Workload extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly minReadySeconds?: number;
    readonly template: PodTemplate;
  };
}

export interface PodTemplate {
  readonly metadata?: Pick<ObjectMeta, "labels" | "annotations">;
  readonly spec: PodSpec;
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
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly terminatingReplicas?: number;
    readonly conditions?: readonly DeploymentCondition[];
  };
}

export interface StatefulSet extends Workload {
  readonly spec: Workload["spec"] & {
    readonly updateStrategy?: {
      readonly type?: string;
      readonly rollingUpdate?: {
        /** Pods with a smaller index keep their template. */
        readonly partition?: number;
        readonly maxUnavailable?: number | string;
      };
    };
    readonly ordinals?: { readonly start?: number };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    /** Terminating pods are replicas, too. */
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly availableReplicas?: number;
    readonly currentRevision?: string;
    readonly updateRevision?: string;
  };
}

export interface Pod extends KubeObject {
  readonly spec: {
    readonly containers: readonly (Container & { readonly resizePolicy?: readonly ResizePolicy[] })[];
    /** Absent until the pod is scheduled. */
    readonly nodeName?: string;
  };
  readonly status?: {
    readonly phase?: string;
    /** The generation of the pod that the kubelet has seen. */
    readonly observedGeneration?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

export interface ResizePolicy {
  readonly resourceName: string;
  readonly restartPolicy: string;
}

export interface ContainerStatus {
  readonly name: string;
  readonly state?: { readonly running?: object };
  /** The previous run of the container. */
  readonly lastState?: { readonly terminated?: { readonly finishedAt?: string; readonly reason?: string } };
  readonly restartCount?: number;
  readonly containerID?: string;
  /** The requests that the kubelet has reserved. */
  readonly allocatedResources?: Readonly<Record<string, string>>;
  /** The resources with which the container runs. */
  readonly resources?: Container["resources"];
}

export interface ReplicaSet extends KubeObject {
  readonly spec: {
    readonly replicas?: number;
    readonly template: { readonly metadata?: Partial<ObjectMeta>; readonly spec: PodSpec };
  };
  readonly status?: { readonly replicas?: number; readonly observedGeneration?: number };
}

export interface ScaleTarget {
  readonly kind: string;
  readonly name: string;
}

export interface HorizontalPodAutoscaler extends KubeObject {
  readonly spec: {
    readonly scaleTargetRef: ScaleTarget;
    readonly metrics?: readonly {
      readonly resource?: ResourceMetric;
      readonly containerResource?: ResourceMetric;
    }[];
  };
}

export interface ResourceMetric {
  readonly target: { readonly type: string };
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

export interface Lease extends KubeObject {
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}
