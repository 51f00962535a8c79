import type { KubeObject, ObjectMeta } from "./objects.ts";

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

/** A request or limit of a container, by default of the container with the variable. */
export interface ResourceFieldRef {
  readonly containerName?: string;
  readonly resource: string;
}

export interface PodSpec {
  readonly containers: readonly TemplateContainer[];
  /** An init container with `restartPolicy: Always` is a sidecar, which runs beside the containers. */
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

export interface PodTemplate {
  readonly metadata?: Pick<ObjectMeta, "labels" | "annotations">;
  readonly spec: PodSpec;
}

export interface Pod extends KubeObject {
  readonly spec: {
    readonly containers: readonly (Container & { readonly resizePolicy?: readonly ResizePolicy[] })[];
    /** Absent until the pod is scheduled. */
    readonly nodeName?: string;
  };
  readonly status?: {
    readonly phase?: string;
    /** The last generation of the pod that the kubelet has seen. */
    readonly observedGeneration?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
      readonly lastTransitionTime?: string;
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
