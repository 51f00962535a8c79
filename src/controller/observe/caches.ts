import { PIPE_SCALINGS } from "../../crd/names.ts";
import type { KubeClient } from "../../kube/client.ts";
import { type ConfigMap, identityOf, type KubeObject } from "../../kube/objects.ts";
import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  HORIZONTAL_AUTOSCALERS,
  PODS,
  VERTICAL_AUTOSCALERS,
} from "../../kube/paths.ts";
import { RESOURCE_LABEL, type RecordKind } from "../../records/labels.ts";
import { type Organization, parseOrganization } from "../../records/organization.ts";
import type { Parsed } from "../../records/parse.ts";
import { parseService, type Service } from "../../records/service.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Informer } from "../../runtime/informer.ts";
import { MultiNamespaceInformer } from "../../runtime/multi-namespace-informer.ts";
import { OptionalInformer } from "../../runtime/optional-informer.ts";
import { Reflector, type ReflectorOptions } from "../../runtime/reflector.ts";
import type { RetryDelays } from "../../runtime/retry-backoff.ts";
import { Store } from "../../runtime/store.ts";
import type { ControllerSettings } from "../../settings/controller.ts";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../names.ts";
import {
  type AutoscalerView,
  toHorizontalAutoscalerView,
  toVerticalAutoscalerView,
} from "./autoscaler-view.ts";
import { type PipeScalingView, toPipeScalingView } from "./pipe-scaling-view.ts";
import { isInCommit, mayBeRollingOut, type PipeView } from "./pipe-view.ts";
import { type PodView, toPodView } from "./pod-view.ts";
import { toPipeView } from "./workloads/deployment.ts";

/** A record of the API, or why it is malformed. */
export type Cached<T> = KubeObject & { readonly record: Parsed<T> };

/** The caches of the controller. */
export interface Caches {
  readonly organizations: Store<Cached<Organization>>;
  readonly services: Store<Cached<Service>>;
  readonly scalings: Store<PipeScalingView>;
  readonly pipes: Store<PipeView>;
  /** The pods with the label of pipes. Those of other workloads have no effect. */
  readonly pods: Store<PodView>;
  /** Horizontal and vertical autoscalers have separate stores, because they can have the same name. */
  readonly autoscalers: readonly [Store<AutoscalerView>, Store<AutoscalerView>];
}

export const BY_ORGANIZATION = "organization";
export const BY_SERVICE = "service";
export const BY_ROLLING = "rolling";
export const BY_COMMIT = "commit";
export const BY_PIPE = "pipe";

const OF_DEPLOYMENT = { [BY_PIPE]: (scaler: AutoscalerView) => pipeKeyOf(scaler, scaler.deployment) };

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
      [BY_COMMIT]: (pipe) => (isInCommit(pipe) ? ["yes"] : []),
    }),
    pods: new Store({ [BY_PIPE]: (pod) => pipeKeyOf(pod, pod.pipeName) }),
    autoscalers: [new Store(OF_DEPLOYMENT), new Store(OF_DEPLOYMENT)],
  };
}

export interface InformerOptions extends Pick<ControllerSettings, "namespace" | "pipeNamespaces"> {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** The CRD of vertical autoscalers is installed. */
  readonly verticalAutoscalers: boolean;
  readonly onProblem: (problem: unknown) => void;
  readonly onEtcdRollback?: (() => void) | undefined;
  /** The controller may watch pods now, and might not before. */
  readonly onPodsGranted: () => void;
  readonly retryDelays?: RetryDelays | undefined;
}

/** The label of the pods of pipes. They may lack the other one, and still run a size. */
const POD_SELECTOR = `${TYPE_LABEL}=${DATABASE_TYPE}`;

/** The labels that mark a Deployment as a pipe. */
export const PIPE_SELECTOR = `${POD_SELECTOR},${SERVICE_LABEL}`;

export interface Informers {
  readonly all: readonly Informer[];
  /** The controller can do without pods. */
  readonly pods: OptionalInformer;
}

/** Creates the informers that fill the caches and keep them current. */
export function createInformers(caches: Caches, options: InformerOptions): Informers {
  const { client, clock, namespace, pipeNamespaces, verticalAutoscalers } = options;
  const { organizations, services } = caches;
  const [horizontals, verticals] = caches.autoscalers;
  const { onProblem, onEtcdRollback, retryDelays } = options;
  const common = { client, clock, onProblem, onEtcdRollback, retryDelays };
  const recordsOf = <T>(
    kind: RecordKind,
    store: Store<Cached<T>>,
    parse: (configMap: ConfigMap) => Parsed<T>,
  ): Informer =>
    new Reflector<Cached<T>, ConfigMap>({
      ...{ ...common, resource: CONFIG_MAPS, namespace, store },
      labelSelector: `${RESOURCE_LABEL}=${kind}`,
      project: (configMap) => ({ metadata: identityOf(configMap.metadata), record: parse(configMap) }),
    });
  const informerOf = <T extends KubeObject, Raw extends KubeObject>(
    kind: Pick<ReflectorOptions<T, Raw>, "resource" | "labelSelector" | "store" | "project"> &
      Partial<Pick<ReflectorOptions<T, Raw>, "onProblem">>,
  ): Informer =>
    pipeNamespaces.length > 1
      ? new MultiNamespaceInformer<T, Raw>({ ...common, ...kind, namespaces: pipeNamespaces })
      : new Reflector<T, Raw>({ ...common, ...kind, namespace: pipeNamespaces[0] });
  const pods = new OptionalInformer(
    (onPodsProblem) =>
      informerOf({
        ...{ resource: PODS, labelSelector: POD_SELECTOR, store: caches.pods, project: toPodView },
        onProblem: onPodsProblem,
      }),
    { clock, onProblem, onGranted: options.onPodsGranted },
  );
  caches.pods.onChange(() => pods.granted());
  const all = [
    recordsOf("organization", organizations, ({ metadata, data }) => parseOrganization(metadata.name, data)),
    recordsOf("service", services, ({ metadata: { name, labels }, data }) =>
      parseService(name, labels, data),
    ),
    informerOf({ resource: PIPE_SCALINGS, store: caches.scalings, project: toPipeScalingView }),
    informerOf({
      resource: DEPLOYMENTS,
      labelSelector: PIPE_SELECTOR,
      store: caches.pipes,
      project: (deployment) => toPipeView(deployment),
    }),
    pods,
    informerOf({ resource: HORIZONTAL_AUTOSCALERS, store: horizontals, project: toHorizontalAutoscalerView }),
    ...(verticalAutoscalers
      ? [informerOf({ resource: VERTICAL_AUTOSCALERS, store: verticals, project: toVerticalAutoscalerView })]
      : []),
  ];
  return { all, pods };
}

/** Returns the store key of the Deployment with this name in the object's namespace; empty without a name. */
export function pipeKeyOf({ metadata }: KubeObject, deployment: string | undefined): readonly string[] {
  return deployment === undefined ? [] : [`${metadata.namespace}/${deployment}`];
}
