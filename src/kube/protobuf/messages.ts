import type {
  ContainerResourceMetric,
  HorizontalPodAutoscaler,
  ResourceMetric,
  ScaleTarget,
} from "../autoscalers.ts";
import type { ConfigMap, FieldsV1, ManagedFields, Node, ObjectMeta, Secret, Taint } from "../objects.ts";
import type {
  Container,
  ContainerStatus,
  EnvVar,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  Pod,
  PodSpec,
  ResizePolicy,
  ResourceFieldRef,
  TemplateContainer,
  Toleration,
} from "../pods.ts";
import type { Deployment, DeploymentCondition } from "../workloads.ts";
import {
  boolean,
  bytesMap,
  type Fields,
  integer,
  integerOrString,
  json,
  Message,
  message,
  messages,
  optionalInteger,
  quantityMap,
  sharedString,
  string,
  stringMap,
  strings,
  time,
} from "./message.ts";

/*
 * The kinds that are read as protobuf, with the field numbers of Kubernetes (generated.proto in k8s.io/api and
 * k8s.io/apimachinery). Their types are in objects.ts, pods.ts, workloads.ts and autoscalers.ts. Numbers never change
 * within an API version. A field that is added to one of these types must get its number here.
 */

type Item<T> = NonNullable<T> extends readonly (infer Each)[] ? Each : never;

const objectMeta = new Message<ObjectMeta>({
  name: string(1),
  namespace: sharedString(3),
  uid: string(5),
  resourceVersion: string(6),
  generation: integer(7),
  creationTimestamp: time(8),
  deletionTimestamp: time(9),
  labels: stringMap(11),
  annotations: stringMap(12),
  ownerReferences: messages(
    13,
    new Message<Item<ObjectMeta["ownerReferences"]>>({ kind: string(1), name: string(3), uid: string(4) }),
  ),
  managedFields: messages(
    17,
    new Message<ManagedFields>({
      manager: sharedString(1),
      operation: sharedString(2),
      time: time(4),
      fieldsV1: json<FieldsV1>(7),
      subresource: string(8),
    }),
  ),
});

export const configMap = new Message<ConfigMap>({ metadata: message(1, objectMeta), data: stringMap(2) });

export const secret = new Message<Secret>({
  metadata: message(1, objectMeta),
  data: bytesMap(2),
  type: string(3),
});

const resources = new Message<NonNullable<Container["resources"]>>({
  limits: quantityMap(1),
  requests: quantityMap(2),
});

const envVar = new Message<EnvVar>({
  name: string(1),
  value: string(2),
  valueFrom: message(
    3,
    new Message<NonNullable<EnvVar["valueFrom"]>>({
      resourceFieldRef: message(
        2,
        new Message<ResourceFieldRef>({ containerName: string(1), resource: string(2) }),
      ),
    }),
  ),
});

const containerFields: Fields<TemplateContainer> = {
  name: string(1),
  command: strings(3),
  args: strings(4),
  env: messages(7, envVar),
  resources: message(8, resources),
};

const container = new Message<TemplateContainer>(containerFields);

const requirement = new Message<NodeSelectorRequirement>({
  key: string(1),
  operator: { number: 2, read: (reader) => reader.readString() as NodeSelectorRequirement["operator"] },
  values: strings(3),
});

const selectorTerm = new Message<NodeSelectorTerm>({
  matchExpressions: messages(1, requirement),
  matchFields: messages(2, requirement),
});

type Affinity = NonNullable<PodSpec["affinity"]>;
type NodeAffinity = NonNullable<Affinity["nodeAffinity"]>;
type NodeSelector = NonNullable<NodeAffinity["requiredDuringSchedulingIgnoredDuringExecution"]>;

const affinity = new Message<Affinity>({
  nodeAffinity: message(
    1,
    new Message<NodeAffinity>({
      requiredDuringSchedulingIgnoredDuringExecution: message(
        1,
        new Message<NodeSelector>({ nodeSelectorTerms: messages(1, selectorTerm) }),
      ),
    }),
  ),
});

const podSpec = new Message<PodSpec>({
  containers: messages(2, container),
  nodeSelector: stringMap(7),
  nodeName: string(10),
  affinity: message(18, affinity),
  initContainers: messages(
    20,
    new Message<Item<PodSpec["initContainers"]>>({
      ...containerFields,
      restartPolicy: string(24),
    }),
  ),
  tolerations: messages(
    22,
    new Message<Toleration>({ key: string(1), operator: string(2), value: string(3), effect: string(4) }),
  ),
  runtimeClassName: string(29),
  overhead: quantityMap(32),
  resources: message(40, resources),
});

type DeploymentSpec = Deployment["spec"];
type Strategy = NonNullable<DeploymentSpec["strategy"]>;

const strategy = new Message<Strategy>({
  type: string(1),
  rollingUpdate: message(
    2,
    new Message<NonNullable<Strategy["rollingUpdate"]>>({
      maxUnavailable: integerOrString(1),
      maxSurge: integerOrString(2),
    }),
  ),
});

const podTemplate = new Message<DeploymentSpec["template"]>({
  metadata: message(
    1,
    new Message<NonNullable<DeploymentSpec["template"]["metadata"]>>({
      labels: stringMap(11),
      annotations: stringMap(12),
    }),
  ),
  spec: message(2, podSpec),
});

const deploymentCondition = new Message<DeploymentCondition>({
  type: string(1),
  status: string(2),
  reason: string(4),
  message: string(5),
  lastUpdateTime: time(6),
  lastTransitionTime: time(7),
});

export const deployment = new Message<Deployment>({
  metadata: message(1, objectMeta),
  spec: message(
    2,
    new Message<DeploymentSpec>({
      replicas: optionalInteger(1),
      template: message(3, podTemplate),
      strategy: message(4, strategy),
      minReadySeconds: integer(5),
      paused: boolean(7),
      progressDeadlineSeconds: optionalInteger(9),
    }),
  ),
  status: message(
    3,
    new Message<NonNullable<Deployment["status"]>>({
      observedGeneration: integer(1),
      replicas: integer(2),
      updatedReplicas: integer(3),
      availableReplicas: integer(4),
      conditions: messages(6, deploymentCondition),
      terminatingReplicas: optionalInteger(9),
    }),
  ),
});

type PodStatus = NonNullable<Pod["status"]>;

const containerStatus = new Message<ContainerStatus>({
  name: string(1),
  state: message(
    2,
    new Message<NonNullable<ContainerStatus["state"]>>({ running: message(2, new Message<object>({})) }),
  ),
  lastState: message(
    3,
    new Message<NonNullable<ContainerStatus["lastState"]>>({
      terminated: message(
        3,
        new Message<NonNullable<NonNullable<ContainerStatus["lastState"]>["terminated"]>>({
          reason: sharedString(3),
          finishedAt: time(6),
        }),
      ),
    }),
  ),
  restartCount: integer(5),
  containerID: string(8),
  allocatedResources: quantityMap(10),
  resources: message(11, resources),
});

export const pod = new Message<Pod>({
  metadata: message(1, objectMeta),
  spec: message(
    2,
    new Message<Pod["spec"]>({
      containers: messages(
        2,
        new Message<Item<Pod["spec"]["containers"]>>({
          name: string(1),
          resources: message(8, resources),
          resizePolicy: messages(
            23,
            new Message<ResizePolicy>({ resourceName: string(1), restartPolicy: string(2) }),
          ),
        }),
      ),
      nodeName: sharedString(10),
    }),
  ),
  status: message(
    3,
    new Message<PodStatus>({
      phase: sharedString(1),
      conditions: messages(
        2,
        new Message<Item<PodStatus["conditions"]>>({
          type: string(1),
          status: string(2),
          lastTransitionTime: time(4),
          reason: string(5),
          message: string(6),
        }),
      ),
      containerStatuses: messages(8, containerStatus),
      observedGeneration: integer(17),
    }),
  ),
});

export const node = new Message<Node>({
  metadata: message(1, objectMeta),
  spec: message(
    2,
    new Message<NonNullable<Node["spec"]>>({
      unschedulable: boolean(4),
      taints: messages(5, new Message<Taint>({ key: string(1), value: string(2), effect: string(3) })),
    }),
  ),
  status: message(3, new Message<NonNullable<Node["status"]>>({ allocatable: quantityMap(2) })),
});

const metricTarget = message(2, new Message<ResourceMetric["target"]>({ type: string(1) }));
const resourceMetric = new Message<ResourceMetric>({ target: metricTarget });
const containerResourceMetric = new Message<ContainerResourceMetric>({
  target: metricTarget,
  container: string(3),
});

type HorizontalSpec = HorizontalPodAutoscaler["spec"];

export const horizontalPodAutoscaler = new Message<HorizontalPodAutoscaler>({
  metadata: message(1, objectMeta),
  spec: message(
    2,
    new Message<HorizontalSpec>({
      scaleTargetRef: message(1, new Message<ScaleTarget>({ kind: string(1), name: string(2) })),
      metrics: messages(
        4,
        new Message<Item<HorizontalSpec["metrics"]>>({
          resource: message(4, resourceMetric),
          containerResource: message(7, containerResourceMetric),
        }),
      ),
    }),
  ),
});
