import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { KubeClient } from "../../kube/client.ts";
import { type ConfigMap, identityOf, type KubeObject } from "../../kube/objects.ts";
import { CONFIG_MAPS, DEPLOYMENTS, PODS } from "../../kube/paths.ts";
import { RESOURCE_LABEL, type RecordKind } from "../../records/labels.ts";
import { type Organization, parseOrganization } from "../../records/organization.ts";
import type { Parsed } from "../../records/parse.ts";
import { parseService, type Service } from "../../records/service.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Informer } from "../../runtime/informer.ts";
import { MultiNamespaceInformer } from "../../runtime/multi-namespace-informer.ts";
import { Reflector, type ReflectorOptions } from "../../runtime/reflector.ts";
import type { RetryDelays } from "../../runtime/retry-backoff.ts";
import { Store } from "../../runtime/store.ts";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../names.ts";
import {
  type AutoscalerView,
  HORIZONTAL_AUTOSCALERS,
  toHorizontalAutoscalerView,
  toVerticalAutoscalerView,
  VERTICAL_AUTOSCALERS,
} from "./autoscaler-view.ts";
import { type DeploymentView, mayBeRollingOut, toDeploymentView } from "./deployment-view.ts";
import { type PendingPodView, toPendingPodView } from "./pending-pod-view.ts";
import { type PipeScalingView, toPipeScalingView } from "./pipe-scaling-view.ts";

type Cached<T> = KubeObject & { readonly record: Parsed<T> };

/** The caches of the controller. */
export interface Caches {
  readonly organizations: Store<Cached<Organization>>;
  readonly services: Store<Cached<Service>>;
  readonly scalings: Store<PipeScalingView>;
  readonly pipes: Store<DeploymentView>;
  /** Only pods without a node. They are few, and leave the cache once they are scheduled. */
  readonly pendingPods: Store<PendingPodView>;
  /** Horizontal and vertical autoscalers have separate stores, because they can have the same name. */
  readonly autoscalers: readonly [Store<AutoscalerView>, Store<AutoscalerView>];
}

export const BY_ORGANIZATION = "organization";
export const BY_SERVICE = "service";
export const BY_ROLLING = "rolling";
export const BY_PIPE = "pipe";

export function createCaches(): Caches {
  return {
    organizations: new Store(),
    services: new Store({
      [BY_ORGANIZATION]: ({ record }) => (record.ok ? [record.value.organizationId] : []),
    }),
    scalings: new Store({ [BY_SERVICE]: (scaling) => [scaling.metadata.name] }),
    pipes: new Store({
      [BY_SERVICE]: (pipe) => [pipe.serviceId],
      [BY_ROLLING]: (pipe) => (mayBeRollingOut(pipe) ? ["yes"] : []),
    }),
    pendingPods: new Store({ [BY_PIPE]: (pod) => pipeKeyOf(pod, pod.pipeName) }),
    autoscalers: [
      new Store({ [BY_PIPE]: (scaler) => pipeKeyOf(scaler, scaler.deployment) }),
      new Store({ [BY_PIPE]: (scaler) => pipeKeyOf(scaler, scaler.deployment) }),
    ],
  };
}

export interface InformerOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** Namespace of the records. */
  readonly namespace: string;
  /** Namespaces of pipes; all if empty. */
  readonly pipeNamespaces: readonly string[];
  /** The CRD of vertical autoscalers is installed. */
  readonly verticalAutoscalers: boolean;
  readonly onProblem: (problem: unknown) => void;
  readonly onEtcdRollback?: (() => void) | undefined;
  readonly retryDelays?: RetryDelays | undefined;
}

/** The labels that mark a Deployment as a pipe. */
export const PIPE_SELECTOR = `${TYPE_LABEL}=${DATABASE_TYPE},${SERVICE_LABEL}`;

const WITHOUT_NODE = "spec.nodeName=";

/** Creates the informers that fill the caches and keep them current. */
export function createInformers(caches: Caches, options: InformerOptions): readonly Informer[] {
  const { client, clock, namespace, pipeNamespaces, verticalAutoscalers } = options;
  const [horizontals, verticals] = caches.autoscalers;
  const { onProblem, onEtcdRollback, retryDelays } = options;
  const common = { client, clock, onProblem, onEtcdRollback, retryDelays };
  const records = { ...common, resource: CONFIG_MAPS, namespace };
  const informerOf = <T extends KubeObject, Raw extends KubeObject>(
    kind: Pick<
      ReflectorOptions<T, Raw>,
      "resource" | "labelSelector" | "fieldSelector" | "store" | "project"
    >,
  ): Informer =>
    pipeNamespaces.length > 1
      ? new MultiNamespaceInformer<T, Raw>({ ...common, ...kind, namespaces: pipeNamespaces })
      : new Reflector<T, Raw>({ ...common, ...kind, namespace: pipeNamespaces[0] });
  return [
    new Reflector({
      ...records,
      labelSelector: selectorOf("organization"),
      store: caches.organizations,
      project: cachedOrganization,
    }),
    new Reflector({
      ...records,
      labelSelector: selectorOf("service"),
      store: caches.services,
      project: cachedService,
    }),
    informerOf({ resource: PIPE_SCALINGS, store: caches.scalings, project: toPipeScalingView }),
    informerOf({
      resource: DEPLOYMENTS,
      labelSelector: PIPE_SELECTOR,
      store: caches.pipes,
      project: (deployment) => toDeploymentView(deployment),
    }),
    informerOf({
      resource: PODS,
      fieldSelector: WITHOUT_NODE,
      store: caches.pendingPods,
      project: toPendingPodView,
    }),
    informerOf({
      resource: HORIZONTAL_AUTOSCALERS,
      store: horizontals,
      project: toHorizontalAutoscalerView,
    }),
    ...(verticalAutoscalers
      ? [informerOf({ resource: VERTICAL_AUTOSCALERS, store: verticals, project: toVerticalAutoscalerView })]
      : []),
  ];
}

/** Returns the store key of the Deployment with this name in the object's namespace; empty without a name. */
export function pipeKeyOf({ metadata }: KubeObject, deployment: string | undefined): readonly string[] {
  return deployment === undefined ? [] : [`${metadata.namespace}/${deployment}`];
}

function selectorOf(kind: RecordKind): string {
  return `${RESOURCE_LABEL}=${kind}`;
}

function cachedOrganization({ metadata, data }: ConfigMap): Cached<Organization> {
  return { metadata: identityOf(metadata), record: parseOrganization(metadata.name, data) };
}

function cachedService({ metadata, data }: ConfigMap): Cached<Service> {
  return { metadata: identityOf(metadata), record: parseService(metadata.name, metadata.labels, data) };
}
