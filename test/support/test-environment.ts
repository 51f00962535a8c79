import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { type ControllerOverrides, runController } from "../../src/controller/process.ts";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import type { Condition, PipeScaling } from "../../src/crd/pipe-scaling.ts";
import type { KubeClient } from "../../src/kube/client.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { collectionPath, DEPLOYMENTS, objectPath } from "../../src/kube/paths.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { organizationConfigMap, organizationConfigMapName } from "../../src/records/organization.ts";
import { serviceConfigMap } from "../../src/records/service.ts";
import type { ControllerSettings } from "../../src/settings/controller.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { applyAll } from "./apply.ts";
import { type PipeOptions, pipeDeployment } from "./fixtures/pipe.ts";
import { accountName, shippedAccount } from "./fixtures/shipped-account.ts";
import { POLICY } from "./fixtures/snapshot.ts";
import { TIERS } from "./fixtures/tiers.ts";
import { installCrds } from "./install-crds.ts";
import { PatientClient } from "./patient-client.ts";

/** An organization with one service in its own namespaces, with operations on it. */
export class TestEnvironment {
  readonly cluster: Cluster;
  readonly client: KubeClient;
  readonly records: string;
  readonly pipes: string;
  readonly organizationId = randomUUID();
  readonly serviceId = randomUUID();
  readonly #log: Readonly<Record<string, unknown>>[] = [];
  readonly #cleanups: (() => Promise<unknown>)[] = [];
  readonly #controllers = new Set<{ readonly abort: AbortController; readonly ended: Promise<void> }>();

  private constructor(cluster: Cluster, client: KubeClient, records: string, pipes: string) {
    this.cluster = cluster;
    this.client = client;
    this.records = records;
    this.pipes = pipes;
  }

  /** @param own cluster of the test; the shared one by default */
  static async create(tier = "basic", own?: Cluster): Promise<TestEnvironment> {
    const cluster = own ?? (await sharedCluster());
    const client = await PatientClient.of(cluster);
    const name = `t-${randomUUID().slice(0, 8)}`;
    const environment = new TestEnvironment(cluster, client, `${name}-records`, `${name}-pipes`);
    if (own) await installCrds(own);
    await applyAll(client, [
      namespace(environment.records),
      ...shippedAccount("controller", environment.records),
      ...environment.#objects(tier),
    ]);
    return environment;
  }

  /**
   * Creates more organizations with one service each, in their own namespaces, for the same controllers. Only the first
   * environment must be ended.
   */
  async more(count: number): Promise<readonly TestEnvironment[]> {
    const environments = Array.from(
      { length: count },
      (_, index) => new TestEnvironment(this.cluster, this.client, this.records, `${this.pipes}-${index}`),
    );
    await applyAll(
      this.client,
      environments.flatMap((environment) => environment.#objects("basic")),
    );
    return environments;
  }

  /** Creates another organization with one service in the same namespaces. Only the first environment must be ended. */
  async neighbor(): Promise<TestEnvironment> {
    const environment = new TestEnvironment(this.cluster, this.client, this.records, this.pipes);
    await applyAll(this.client, environment.#objects("basic"));
    return environment;
  }

  #objects(tier: string): readonly object[] {
    const { records, pipes, organizationId, serviceId } = this;
    const service = serviceConfigMap({ id: serviceId, organizationId, name: "orders", namespace: pipes });
    return [namespace(pipes), this.#organization(tier), inNamespace(service, records)];
  }

  #organization(tier: string): object {
    const createdAt = new Date("2026-01-01T00:00:00Z");
    const record = organizationConfigMap({ id: this.organizationId, name: "ACME", createdAt, tier });
    return inNamespace(record, this.records);
  }

  /** Starts the controller in this process, with the permissions of its ServiceAccount. */
  async startController(
    settings: Partial<ControllerSettings> = {},
    overrides: ControllerOverrides = {},
  ): Promise<() => Promise<void>> {
    const kubeconfig = await serviceAccountKubeconfig(this.cluster, this.records, accountName("controller"));
    const abort = new AbortController();
    const ended = runController(
      {
        kubeconfig,
        namespace: this.records,
        pipeNamespaces: [this.pipes],
        host: "127.0.0.1",
        opsPort: 0,
        metricsAuthentication: false,
        otlpEndpoint: undefined,
        identity: randomUUID(),
        tiers: TIERS,
        ...POLICY,
        ...settings,
      },
      createLogger("info", "controller", { write: (line) => this.#log.push(JSON.parse(line)) }),
      abort.signal,
      // Much shorter than in production, because most tests do not need it.
      { ...overrides, timeouts: { recreateMs: 500, adoptMs: 0, ...overrides.timeouts } },
    ).catch((error: unknown) => {
      // The end of a test during the startup is no failure, nor is that of a process.
      if (error !== abort.signal.reason) throw error;
    });
    const controller = { abort, ended };
    this.#controllers.add(controller);
    // The end of the controller, or of the test, reports an error that ends it earlier.
    ended.catch(() => undefined);
    return async () => {
      this.#controllers.delete(controller);
      abort.abort();
      await ended;
    };
  }

  /** The log lines of all controllers so far. */
  get log(): readonly Readonly<Record<string, unknown>>[] {
    return this.#log;
  }

  /** The errors of all controllers so far, in the order of the log. */
  get errors(): readonly Readonly<Record<string, unknown>>[] {
    return this.#log.filter(({ level }) => level === "error" || level === "fatal");
  }

  /** The Prometheus metrics of the controller that was started last. */
  async scrape(): Promise<string> {
    const line = await waitFor(() => this.#log.findLast(({ msg }) => msg === "listening"), {
      what: "the controller to start listening",
    });
    const response = await fetch(`${line["opsUrl"]}/metrics`);
    return response.text();
  }

  async end(): Promise<void> {
    for (const { abort } of this.#controllers) abort.abort();
    await Promise.all([...this.#controllers].map(({ ended }) => ended));
    await Promise.all(this.#cleanups.map((each) => each()));
    await this.client.close();
  }

  /** For objects that slow down the cluster for other tests. Other objects stay until the cluster is removed. */
  onEnd(cleanup: () => Promise<unknown>): void {
    this.#cleanups.push(cleanup);
  }

  setTier(tier: string): Promise<void> {
    return applyAll(this.client, [this.#organization(tier)]);
  }

  get organizationName(): string {
    return organizationConfigMapName(this.organizationId);
  }

  create(
    resource: Parameters<typeof collectionPath>[0],
    namespace: string,
    body: object,
  ): Promise<KubeObject> {
    return this.client.json({ method: "POST", path: collectionPath(resource, namespace), body });
  }

  /** Deletes all objects of a kind in the namespace of the pipes. */
  deleteAll(resource: Parameters<typeof collectionPath>[0]): Promise<unknown> {
    return this.client.json({ method: "DELETE", path: collectionPath(resource, this.pipes) });
  }

  createPipe(
    options: Omit<PipeOptions, "namespace" | "serviceId"> & { serviceId?: string },
  ): Promise<KubeObject> {
    const deployment = pipeDeployment({ serviceId: this.serviceId, ...options, namespace: this.pipes });
    return this.create(DEPLOYMENTS, this.pipes, deployment);
  }

  pipe(name: string): Promise<Deployment> {
    return this.client.json({ path: objectPath(DEPLOYMENTS, this.pipes, name) });
  }

  patchPipe(name: string, body: object, fieldManager = "somebody"): Promise<Deployment> {
    return this.client.json({
      method: "PATCH",
      path: objectPath(DEPLOYMENTS, this.pipes, name),
      patchType: "application/strategic-merge-patch+json",
      query: { fieldManager },
      body,
    });
  }

  scaling(name = this.serviceId): Promise<KubeObject & PipeScaling> {
    return this.client.json({ path: objectPath(PIPE_SCALINGS, this.pipes, name) });
  }

  /** Like `kubectl patch`. */
  patchScaling(spec: object | undefined, annotations?: object): Promise<KubeObject & PipeScaling> {
    return this.client.json({
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, this.pipes, this.serviceId),
      patchType: "application/merge-patch+json",
      body: { apiVersion: API_VERSION, kind: KIND, metadata: { annotations }, spec },
    });
  }

  requestSize(cores: number | null): Promise<KubeObject & PipeScaling> {
    return this.patchScaling({
      replicaCpuMillicores: cores === null ? null : cores * 1000,
      replicaMemoryGb: cores === null ? null : cores * 4,
    });
  }

  /** Waits until the PipeScaling's newest generation has this condition. */
  waitForCondition(type: string, status: string, reason?: string): Promise<KubeObject & PipeScaling> {
    return waitFor(
      async () => {
        const scaling = await this.scaling();
        const condition = conditionOf(scaling, type);
        const isSeen = scaling.status?.observedGeneration === scaling.metadata.generation;
        const isIt = condition?.status === status && (reason === undefined || condition.reason === reason);
        return isSeen && isIt ? scaling : undefined;
      },
      { what: `${type}=${status} ${reason ?? ""} of ${this.serviceId}` },
    );
  }
}

export function conditionOf(scaling: PipeScaling, type: string): Condition | undefined {
  return scaling.status?.conditions?.find((each) => each.type === type);
}

/** Requests and limit of the only container, in the spelling of the API server. */
export function resourcesOf(deployment: Pick<Deployment, "spec">): string {
  const { requests = {}, limits = {} } = deployment.spec.template.spec.containers[0]?.resources ?? {};
  return `${requests["cpu"]} ${requests["memory"]} ${limits["memory"]}`;
}

function inNamespace(object: { readonly metadata: object }, name: string): object {
  return { ...object, metadata: { ...object.metadata, namespace: name } };
}

function namespace(name: string): object {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name } };
}
