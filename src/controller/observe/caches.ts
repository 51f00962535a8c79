import { PIPE_SCALINGS } from "../../crd/names.ts";
import { type ConfigMap, identityOf, type KubeObject } from "../../kube/objects.ts";
import { CONFIG_MAPS, HORIZONTAL_AUTOSCALERS, PODS, VERTICAL_AUTOSCALERS } from "../../kube/paths.ts";
import type { RecordKind } from "../../records/kinds.ts";
import { RESOURCE_LABEL } from "../../records/labels.ts";
import { type Organization, parseOrganization } from "../../records/organization.ts";
import type { Parsed } from "../../records/parse.ts";
import { parseService, type Service } from "../../records/service.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Informer } from "../../runtime/informer.ts";
import type { ReflectorClient } from "../../runtime/list-watch.ts";
import { MultiNamespaceInformer } from "../../runtime/multi-namespace-informer.ts";
import { OptionalInformer } from "../../runtime/optional-informer.ts";
import { Outage } from "../../runtime/outage.ts";
import { Reflector, type ReflectorOptions } from "../../runtime/reflector.ts";
import type { RetryDelays } from "../../runtime/retry-backoff.ts";
import { type Change, type Indexes, Store } from "../../runtime/store.ts";
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
import { KINDS, PIPE_KINDS, type PipeKind, pipeKeysOf, pipeName } from "./workloads/kinds.ts";

/** A record of the API, or why it is malformed. */
export type Cached<T> = KubeObject & { readonly record: Parsed<T> };

/** The pipes of all kinds. The versions of different kinds cannot be compared, so each kind has a store of its own. */
export class PipeStore {
  readonly #stores: Readonly<Record<PipeKind, Store<PipeView>>>;

  constructor(indexes: Indexes<PipeView>) {
    this.#stores = { Deployment: new Store(indexes), StatefulSet: new Store(indexes) };
  }

  of(kind: PipeKind): Store<PipeView> {
    return this.#stores[kind];
  }

  get size(): number {
    return this.#all.reduce((sum, { size }) => sum + size, 0);
  }

  /** @param key as `keyOfPipe` returns it: the key in the store, with the kind of a StatefulSet before its name */
  get(key: string): PipeView | undefined {
    const prefix = `/${pipeName("StatefulSet", "")}`;
    return key.includes(prefix)
      ? this.#stores.StatefulSet.get(key.replace(prefix, "/"))
      : this.#stores.Deployment.get(key);
  }

  *values(): Generator<PipeView> {
    for (const store of this.#all) yield* store.values();
  }

  by(index: string, value: string): PipeView[] {
    return this.#all.flatMap((store) => store.by(index, value));
  }

  onChange(listener: (change: Change<PipeView>) => void): void {
    for (const store of this.#all) store.onChange(listener);
  }

  get #all(): readonly Store<PipeView>[] {
    return PIPE_KINDS.map((kind) => this.#stores[kind]);
  }
}

export interface Caches {
  readonly organizations: Store<Cached<Organization>>;
  readonly services: Store<Cached<Service>>;
  readonly scalings: Store<PipeScalingView>;
  readonly pipes: PipeStore;
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

const OF_PIPE = { [BY_PIPE]: (scaler: AutoscalerView) => pipeKeysOf(scaler, scaler.pipeName) };

export function createCaches(): Caches {
  return {
    organizations: new Store(),
    services: new Store({
      [BY_ORGANIZATION]: ({ record }) => (record.ok ? [record.value.organizationId] : []),
    }),
    scalings: new Store({ [BY_SERVICE]: (scaling) => [scaling.metadata.name] }),
    pipes: new PipeStore({
      [BY_SERVICE]: (pipe) => [pipe.serviceId],
      [BY_ROLLING]: (pipe) => (mayBeRollingOut(pipe) ? ["yes"] : []),
      [BY_COMMIT]: (pipe) => (isInCommit(pipe) ? ["yes"] : []),
    }),
    pods: new Store({ [BY_PIPE]: (pod) => pipeKeysOf(pod, pod.pipeName) }),
    autoscalers: [new Store(OF_PIPE), new Store(OF_PIPE)],
  };
}

export interface InformerOptions extends Pick<ControllerSettings, "namespace" | "pipeNamespaces"> {
  readonly client: ReflectorClient;
  readonly clock: Clock;
  /** The CRD of vertical autoscalers is installed, or that is unknown. */
  readonly verticalAutoscalers: boolean;
  readonly onProblem: (problem: unknown) => void;
  readonly onEtcdRollback?: (() => void) | undefined;
  /** In this namespace, or in all, the controller may watch pods or StatefulSets now, or may not any more. */
  readonly onPermissionChange: (namespace: string | undefined) => void;
  readonly retryDelays?: RetryDelays | undefined;
}

/** Selects the pods of pipes. A pod that lacks the label of the service may still belong to a pipe. */
const POD_SELECTOR = `${TYPE_LABEL}=${DATABASE_TYPE}`;

/** The labels that mark a workload as a pipe. */
export const PIPE_SELECTOR = `${POD_SELECTOR},${SERVICE_LABEL}`;

export interface Informers {
  readonly all: readonly Informer[];
  /** Those of pods and StatefulSets, which may be refused. Without StatefulSets, pipes are Deployments only. */
  readonly optional: readonly OptionalInformer[];
  /** Returns why the controller does not see the pods in a namespace; `undefined` if it does. */
  podsProblem(namespace: string | undefined): string | undefined;
  /** Why the controller cannot watch StatefulSets. The caches still have those that it has seen. */
  statefulSetsProblem(namespace: string | undefined): string | undefined;
}

type WatchedKind<T extends KubeObject, Raw extends KubeObject> = Pick<
  ReflectorOptions<T, Raw>,
  "resource" | "labelSelector" | "store" | "project" | "isRemovable"
>;

/** Creates the informers that fill the caches and keep them current. */
export function createInformers(caches: Caches, options: InformerOptions): Informers {
  const { client, clock, namespace, pipeNamespaces, verticalAutoscalers } = options;
  const { organizations, services } = caches;
  const [horizontals, verticals] = caches.autoscalers;
  const { onProblem, onEtcdRollback, retryDelays } = options;
  const common = { client, clock, onProblem, onEtcdRollback, retryDelays, outage: new Outage() };
  const recordsOf = <T>(
    kind: RecordKind,
    store: Store<Cached<T>>,
    parse: (configMap: ConfigMap) => Parsed<T>,
  ): Informer =>
    new Reflector<Cached<T>, ConfigMap>({
      ...common,
      resource: CONFIG_MAPS,
      namespace,
      store,
      labelSelector: `${RESOURCE_LABEL}=${kind}`,
      project: (configMap) => ({ metadata: identityOf(configMap.metadata), record: parse(configMap) }),
    });
  const informerOf = <T extends KubeObject, Raw extends KubeObject>(
    kind: WatchedKind<T, Raw>,
    create: (options: ReflectorOptions<T, Raw>) => Informer = (one) => new Reflector(one),
  ): Informer =>
    pipeNamespaces.length > 1
      ? new MultiNamespaceInformer<T, Raw>({ ...common, ...kind, create, namespaces: pipeNamespaces })
      : create({ ...common, ...kind, namespace: pipeNamespaces[0] });
  const pipesOf = (kind: PipeKind) => {
    const { resource, toView: project } = KINDS[kind];
    return { resource, labelSelector: PIPE_SELECTOR, store: caches.pipes.of(kind), project };
  };
  const optional: OptionalInformer[] = [];
  /** Each namespace has an informer of its own, so that a permission that is missing in one concerns no other. */
  const optionalOf = <T extends KubeObject, Raw extends KubeObject>(kind: WatchedKind<T, Raw>) => {
    const parts = new Map<string | undefined, OptionalInformer>();
    const partOf = (of: string | undefined) => parts.get(of) ?? parts.get(undefined);
    const informer = informerOf(kind, (one) => {
      const part = new OptionalInformer((onRefusal) => new Reflector({ ...one, onProblem: onRefusal }), {
        clock,
        onProblem,
        onPermissionChange: () => options.onPermissionChange(one.namespace),
      });
      parts.set(one.namespace, part);
      return part;
    });
    optional.push(...parts.values());
    kind.store.onChange((change) => {
      const { metadata } = change.type === "deleted" ? change.previous : change.object;
      partOf(metadata.namespace)?.granted();
    });
    return { informer, problemIn: (of: string | undefined) => partOf(of)?.problem };
  };
  const pods = optionalOf({
    resource: PODS,
    labelSelector: POD_SELECTOR,
    store: caches.pods,
    project: toPodView,
  });
  const statefulSets = optionalOf(pipesOf("StatefulSet"));
  const all = [
    recordsOf("organization", organizations, ({ metadata, data }) => parseOrganization(metadata.name, data)),
    recordsOf("service", services, ({ metadata: { name, labels }, data }) =>
      parseService(name, labels, data),
    ),
    informerOf({ resource: PIPE_SCALINGS, store: caches.scalings, project: toPipeScalingView }),
    informerOf(pipesOf("Deployment")),
    statefulSets.informer,
    pods.informer,
    informerOf({ resource: HORIZONTAL_AUTOSCALERS, store: horizontals, project: toHorizontalAutoscalerView }),
    ...(verticalAutoscalers
      ? [
          informerOf({
            resource: VERTICAL_AUTOSCALERS,
            store: verticals,
            project: toVerticalAutoscalerView,
            isRemovable: true,
          }),
        ]
      : []),
  ];
  return { all, optional, podsProblem: pods.problemIn, statefulSetsProblem: statefulSets.problemIn };
}
