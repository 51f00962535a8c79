import { setTimeout } from "node:timers/promises";
import type { VersionInfo } from "@kubernetes/client-node";
import { DATABASE_TYPE, LEASE_NAME, SERVICE_LABEL, TYPE_LABEL } from "../../controller/names.ts";
import type { PipeView } from "../../controller/observe/pipe-view.ts";
import { toPodView } from "../../controller/observe/pod-view.ts";
import { KINDS, PIPE_KINDS, type PipeKind, pipeKey } from "../../controller/observe/workloads/kinds.ts";
import { HOLD } from "../../controller/observe/workloads/stateful-set.ts";
import { GROUP, PIPE_SCALINGS } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import type { KubeClient, KubeRequest } from "../../kube/client.ts";
import { isCode, unlessCode } from "../../kube/errors.ts";
import { memoized } from "../../kube/memoized.ts";
import type { ConfigMap, KubeObject, Lease, Secret } from "../../kube/objects.ts";
import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  LEASES,
  objectPath,
  PODS,
  type Resource,
  SECRETS,
  STATEFUL_SETS,
} from "../../kube/paths.ts";
import type { Pod, PodTemplate } from "../../kube/pods.ts";
import { Semaphore } from "../../kube/semaphore.ts";
import type { Deployment, StatefulSet, Workload } from "../../kube/workloads.ts";
import { RESOURCE_LABEL } from "../../records/labels.ts";
import type { Clock } from "../../runtime/clock.ts";
import { kubectlCommand, type Place, programCommand } from "../options.ts";
import { listAll, type Selection } from "../reading.ts";
import {
  COMPONENT_LABEL,
  type Installation,
  installationOf,
  type ProcessDeployment,
} from "./installation.ts";
import { parseKeys, parseRecords } from "./records.ts";

/** A page of large objects needs longer than other responses over a slow connection. */
const LIST_TIMEOUT_MS = 30_000;

const MAX_RETRIES = 3;

/** Fewer than the connections of the client, because the deadline of a call includes its wait for one. */
const MAX_CALLS = 64;

export interface ClusterOptions {
  readonly client: Pick<KubeClient, "json" | "server">;
  readonly signal: AbortSignal;
  readonly clock: Pick<Clock, "now">;
  readonly place: Place;
}

export type Scaling = KubeObject & PipeScaling;

/** A pipe as the controller sees it. */
export interface Pipe {
  readonly view: PipeView;
  readonly template: PodTemplate;
}

/** A workload that has a label of pipes, itself or in its pod template. */
export interface Labeled extends KubeObject {
  readonly kind: PipeKind;
  readonly podLabels: Readonly<Record<string, string>>;
}

/** Selects pipes of any kind. */
export const OF_PIPES = { labelSelector: `${TYPE_LABEL}=${DATABASE_TYPE},${SERVICE_LABEL}` };

/**
 * The parts of the cluster that checks read, each once and on demand. Without the permission to read a part, its method
 * rejects with a KubeApiError 403, except `controller` and `controllers`.
 */
export class Cluster {
  readonly options: ClusterOptions;

  readonly version = memoized(() => this.json<VersionInfo>("/version"));

  readonly records = memoized(async () =>
    parseRecords(await this.#listRecords<ConfigMap>(CONFIG_MAPS), this.options.place),
  );

  readonly keys = memoized(async () =>
    parseKeys(await this.#listRecords<Secret>(SECRETS), this.options.place),
  );

  /** The processes in all namespaces. */
  readonly installations = memoized(async () => {
    const query = { labelSelector: `${COMPONENT_LABEL} in (api, controller)` };
    const deployments = await this.list<ProcessDeployment>({ resource: DEPLOYMENTS, query });
    return deployments.flatMap((each) => installationOf(each) ?? []);
  });

  readonly lease = memoized(() => this.get<Lease>(objectPath(LEASES, this.namespace, LEASE_NAME)));

  /** The Deployments in all namespaces that are paused, or have a label of pipes, also in the pod template. */
  readonly deployments = memoized(() =>
    this.list<Deployment>({ resource: DEPLOYMENTS }, (each) => each.spec.paused === true || isLabeled(each)),
  );

  /** The StatefulSets in all namespaces that a controller may hold, or that have such a label. */
  readonly statefulSets = memoized(() =>
    this.list<StatefulSet>(
      { resource: STATEFUL_SETS },
      (each) => (each.spec.updateStrategy?.rollingUpdate?.partition ?? 0) >= HOLD || isLabeled(each),
    ),
  );

  /** The workloads in all namespaces that have a label of pipes, themselves or in their pod template. */
  readonly labeled = memoized(async (): Promise<readonly Labeled[]> => {
    const of = (kind: PipeKind, workloads: readonly Workload[]) =>
      workloads.filter(isLabeled).map(({ metadata, spec }) => {
        const { labels: podLabels = {} } = spec.template.metadata ?? {};
        return { kind, metadata, podLabels };
      });
    const statefulSets = of("StatefulSet", await this.statefulSets());
    return [...of("Deployment", await this.deployments()), ...statefulSets];
  });

  /** The pipes that the controller sees. */
  readonly pipes = memoized(async (): Promise<readonly Pipe[]> => {
    const ofKinds = PIPE_KINDS.map(async (kind) => {
      const { resource, toView } = KINDS[kind];
      const workloads = await this.#listOfPipes<Workload>(resource, OF_PIPES);
      return workloads.map((each) => ({ view: toView(each), template: each.spec.template }));
    });
    return (await Promise.all(ofKinds)).flat();
  });

  /** The pods with the label by which the controller sees them, by the key of their pipe. */
  readonly pods = memoized(async () => {
    const pods = await this.#listOfPipes<Pod>(PODS, { labelSelector: `${TYPE_LABEL}=${DATABASE_TYPE}` });
    return Map.groupBy(pods.map(toPodView), (pod) => pipeKey(pod, pod.pipeName ?? ""));
  });

  readonly scalings = memoized(() => this.#listOfPipes<Scaling>(PIPE_SCALINGS, {}));

  constructor(options: ClusterOptions) {
    const { client, signal } = options;
    const calls = new Semaphore(MAX_CALLS);
    async function json<T>(request: KubeRequest): Promise<T> {
      const release = await calls.acquire(signal);
      try {
        return await unlessBusy(() => client.json<T>(request), signal);
      } finally {
        release();
      }
    }
    this.options = { ...options, client: { server: client.server, json } };
  }

  /** Namespace of the records. */
  get namespace(): string {
    return this.options.place.namespace;
  }

  /** Returns a kubectl command for a remedy. It has the kubeconfig and the context of this command. */
  kubectl(words: string): string {
    return kubectlCommand(this.options.place, words);
  }

  /** A command of this program for a remedy: it acts on the same records, or on those in another namespace. */
  command(words: string, namespace = this.namespace): string {
    return programCommand({ ...this.options.place, namespace }, words);
  }

  json<T>(path: string): Promise<T> {
    return this.options.client.json<T>({ path, signal: this.options.signal });
  }

  /** `undefined` if there is no such object. */
  get<T>(path: string): Promise<T | undefined> {
    return unlessCode(404, this.json<T>(path), undefined);
  }

  /** In one namespace, or in all. A kind that the cluster does not know has no objects. */
  list<T extends KubeObject>(selection: Selection, isWanted?: (object: T) => boolean): Promise<readonly T[]> {
    const { client, signal } = this.options;
    const patient = {
      json: <R>(request: KubeRequest) => client.json<R>({ ...request, timeoutMs: LIST_TIMEOUT_MS }),
    };
    return unlessCode(404, listAll<T>(patient, selection, signal, isWanted), []);
  }

  /** The processes that use these records. */
  async ownInstallations(): Promise<readonly Installation[]> {
    return (await this.installations()).filter(({ records }) => records === this.namespace);
  }

  /** Returns the controller that uses these records; `undefined` if there is none, or no permission to find it. */
  async controller(): Promise<Installation | undefined> {
    return (await this.controllers()).find(({ records }) => records === this.namespace);
  }

  /** Returns the controllers of all releases; empty without the permission to find them. */
  async controllers(): Promise<readonly Installation[]> {
    const installations = await unlessCode(403, this.installations(), []);
    return installations.filter(({ component }) => component === "controller");
  }

  #listRecords<T extends KubeObject>(resource: Resource): Promise<readonly T[]> {
    const query = { labelSelector: RESOURCE_LABEL };
    return this.list<T>({ resource, namespace: this.namespace, query });
  }

  /** Lists objects only in the namespaces where the controller looks for pipes; in all if it is not found. */
  async #listOfPipes<T extends KubeObject>(resource: Resource, query: Record<string, string>): Promise<T[]> {
    const { pipeNamespaces = [] } = (await this.controller()) ?? {};
    const namespaces = pipeNamespaces.length === 0 ? [undefined] : pipeNamespaces;
    const lists = namespaces.map((namespace) => this.list<T>({ resource, namespace, query }));
    return (await Promise.all(lists)).flat();
  }
}

/** Repeats a call that the API server rejects because it is busy. No call of doctor changes anything. */
async function unlessBusy<T>(call: () => Promise<T>, signal: AbortSignal, retries = MAX_RETRIES): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (retries === 0 || !(isCode(error, 429) || isCode(error, 503))) throw error;
    await setTimeout(error.retryAfterMs ?? 1000, undefined, { signal });
    return unlessBusy(call, signal, retries - 1);
  }
}

function isLabeled({ metadata, spec }: Workload): boolean {
  const labels = { ...metadata.labels, ...spec.template.metadata?.labels };
  return Object.keys(labels).some((key) => key.startsWith(`${GROUP}/`));
}
