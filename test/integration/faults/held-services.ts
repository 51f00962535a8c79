import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { expect } from "vitest";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../../src/controller/names.ts";
import type { Timeouts } from "../../../src/controller/timeouts.ts";
import type { FallbackReason } from "../../../src/crd/fallback-reasons.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import { collectionPath, objectPath, PODS, REPLICA_SETS } from "../../../src/kube/paths.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { Deployment, ReplicaSet } from "../../../src/kube/workloads.ts";
import { accountName } from "../../support/fixtures/shipped-account.ts";
import { STEPS, type Step } from "../../support/in-place-steps.ts";
import { conditionOf, resourcesOf, TestEnvironment } from "../../support/test-environment.ts";
import { restrictController } from "../in-place-account.ts";
import { isAdopted } from "../is-adopted.ts";
import { FaultyProxy, type Handling, type ProxiedRequest } from "./faulty-proxy.ts";

export const PIPE = "pipe";

type RunningPod = Pod & KubeObject;

interface StartOptions {
  /** Each has its own service. */
  readonly steps?: readonly Step[];
  /** The shared cluster by default. */
  readonly cluster?: Parameters<typeof TestEnvironment.create>[1];
  /** False without the admission policies that restrict the controller. */
  readonly isRestricted?: boolean;
  /** Waits of the controller that are not as long as in production. */
  readonly timeouts?: Partial<Timeouts>;
}

/**
 * Services of one pipe with two pods, whose resizes in place can be held, each before a different step. So one test
 * covers a fault between any two steps.
 */
export class HeldServices {
  readonly environment: TestEnvironment;
  readonly services: readonly HeldService[];
  readonly #proxy: FaultyProxy;
  readonly #timeouts: Partial<Timeouts>;
  #held: PromiseWithResolvers<void> = Promise.withResolvers();
  #stopController: () => Promise<void> = () => Promise.resolve();

  private constructor(
    environment: TestEnvironment,
    services: readonly HeldService[],
    proxy: FaultyProxy,
    timeouts: Partial<Timeouts>,
  ) {
    this.environment = environment;
    this.services = services;
    this.#proxy = proxy;
    this.#timeouts = timeouts;
  }

  /** Resolves when the pods of all services run with one core. */
  static async start(options: StartOptions = {}): Promise<HeldServices> {
    const { steps = STEPS, cluster, isRestricted = true, timeouts = {} } = options;
    const environment = await TestEnvironment.create("basic", cluster);
    if (isRestricted) await restrictController(environment);
    const others = steps.length > 1 ? await environment.more(steps.length - 1) : [];
    const all = [environment, ...others];
    const services = steps.flatMap((step, index) => {
      const own = all[index];
      return own ? [new HeldService(own, step)] : [];
    });
    const proxy = await FaultyProxy.start(environment.cluster);
    const held = new HeldServices(environment, services, proxy, timeouts);
    await held.#startController();
    await held.#each((service) => service.createPipe());
    await held.#each((service) => service.settled(1));
    return held;
  }

  async #startController(): Promise<void> {
    const { cluster, records } = this.environment;
    const direct = await serviceAccountKubeconfig(cluster, records, accountName("controller"));
    const settings = {
      kubeconfig: this.#proxy.kubeconfig(direct),
      pipeNamespaces: this.services.map(({ environment }) => environment.pipes),
      resizeStrategy: "InPlaceOrRollout",
    } as const;
    this.#stopController = await this.environment.startController(settings, { timeouts: this.#timeouts });
  }

  /** Requests a size for all services, and resolves when each is held before its step. */
  async hold(cores: number): Promise<void> {
    this.#held = Promise.withResolvers();
    for (const service of this.services) service.begin(this.#held.promise);
    this.#proxy.handle = (request) => {
      const service = this.services.find((each) =>
        request.url.includes(`/namespaces/${each.environment.pipes}/`),
      );
      return service?.handle(request);
    };
    await this.#each(({ environment }) => environment.requestSize(cores));
    await waitFor(() => this.services.every(({ isHeld }) => isHeld), {
      what: "each service to be held before its step",
    });
  }

  /** Replaces the handler for the requests of the controller from now on. */
  handle(handle: FaultyProxy["handle"]): void {
    this.#proxy.handle = handle;
  }

  /** Forwards the held requests, and all later ones. */
  release(): void {
    this.#proxy.handle = () => undefined;
    this.#held.resolve();
  }

  /** The controller ends before the held requests reach the server, and another one starts. */
  async crash(): Promise<void> {
    const ended = this.#stopController();
    this.#proxy.handle = () => undefined;
    this.#held.reject(new Error("the controller has crashed"));
    await ended;
    await this.#startController();
  }

  /** Holds the services before their steps, calls `act` for each, and releases them. */
  async between(cores: number, act: (service: HeldService) => Promise<unknown>): Promise<void> {
    await this.hold(cores);
    await this.#each(act);
    this.release();
  }

  async each(act: (service: HeldService) => Promise<unknown>): Promise<void> {
    await this.#each(act);
  }

  async #each(act: (service: HeldService) => Promise<unknown>): Promise<void> {
    const results = await Promise.allSettled(this.services.map(act));
    const errors = results.flatMap((result, index) => {
      const service = this.services[index];
      if (result.status === "fulfilled" || !service) return [];
      return [`before "${service.step}": ${result.reason}\n${this.#logOf(service)}`];
    });
    expect(errors).toEqual([]);
  }

  /** Log lines of the controller about the service. */
  #logOf({ environment }: HeldService): string {
    const lines = this.environment.log.filter(({ serviceId }) => serviceId === environment.serviceId);
    return lines
      .map(({ msg, size = "", reason = "", err = "" }) => [msg, size, reason, JSON.stringify(err)].join(" "))
      .join("\n");
  }

  async end(): Promise<void> {
    this.release();
    await this.environment.end();
    for (const { environment } of this.services) {
      if (environment !== this.environment) await environment.client.close();
    }
    await this.#proxy.stop();
  }
}

export class HeldService {
  readonly environment: TestEnvironment;
  /** The step before which it is held. */
  readonly step: Step;
  isHeld = false;
  /** UIDs of the pods with the first size. */
  before: readonly string[] = [];
  #after: Promise<void> | undefined;
  readonly #writes = new Map<string, number>();

  constructor(environment: TestEnvironment, step: Step) {
    this.environment = environment;
    this.step = step;
  }

  begin(after: Promise<void>): void {
    this.isHeld = false;
    this.#after = after;
    this.#writes.clear();
  }

  handle(request: ProxiedRequest): Handling | undefined {
    if (this.isHeld || this.#stepOf(request) !== this.step || !this.#after) return undefined;
    this.isHeld = true;
    return { type: "pass", after: this.#after };
  }

  #stepOf({ verb, resource, url }: ProxiedRequest): Step | undefined {
    if (verb !== "patch") return undefined;
    if (url.includes("dryRun=All")) return "dry run";
    const count = (this.#writes.get(resource) ?? 0) + 1;
    this.#writes.set(resource, count);
    if (resource === "pods/resize")
      return count === 1 ? "resize of the first pod" : "resize of the second pod";
    if (resource === "deployments") return count === 1 ? "pause" : "resumption";
    return resource === "replicasets" ? "write to the ReplicaSet" : undefined;
  }

  createPipe(): Promise<unknown> {
    const podLabels = { [SERVICE_LABEL]: this.environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    return this.environment.createPipe({ name: PIPE, cores: 1, replicas: 2, podLabels });
  }

  pipe(): Promise<Deployment> {
    return this.environment.pipe(PIPE);
  }

  /** Patches the pipe as kubectl does. */
  change(spec: object): Promise<Deployment> {
    return this.environment.patchPipe(PIPE, { spec }, "kubectl");
  }

  /** Lists the pods that are not being deleted. */
  async pods(): Promise<readonly RunningPod[]> {
    const items = await this.#list<RunningPod>(PODS);
    return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  /** The ReplicaSets of the pipe. */
  async replicaSets(): Promise<readonly (ReplicaSet & KubeObject)[]> {
    const items = await this.#list<ReplicaSet & KubeObject>(REPLICA_SETS);
    return items.filter(({ metadata }) => metadata.name.startsWith(`${PIPE}-`));
  }

  async #list<T>(resource: Parameters<typeof collectionPath>[0]): Promise<readonly T[]> {
    const { client, pipes } = this.environment;
    const { items } = await client.json<{ readonly items: readonly T[] }>({
      path: collectionPath(resource, pipes),
    });
    return items;
  }

  async aPod(): Promise<RunningPod> {
    const [pod] = await this.pods();
    if (!pod) throw new Error("the pipe has no pods");
    return pod;
  }

  /** @param subresource with a slash before it */
  patchPod(name: string, body: object, subresource = ""): Promise<unknown> {
    const { client, pipes } = this.environment;
    return client.json({
      method: "PATCH",
      path: `${objectPath(PODS, pipes, name)}${subresource}`,
      patchType: "application/strategic-merge-patch+json",
      body,
    });
  }

  /** Waits until the pipe is adopted, and its status, its template and all its pods have the size. */
  async settled(cores: number, replicas = 2): Promise<void> {
    const { environment } = this;
    const size = `${cores} ${cores * 4}Gi`;
    const problem = async () => {
      const [scaling, pipe, pods] = await Promise.all([environment.scaling(), this.pipe(), this.pods()]);
      const isSeen = scaling.status?.observedGeneration === scaling.metadata.generation;
      const ready = conditionOf(scaling, "Ready");
      if (!isSeen || ready?.status !== "True") return `not ready: ${ready?.message}`;
      if (resourcesOf(pipe) !== `${size} ${cores * 4}Gi`) return `the template has ${resourcesOf(pipe)}`;
      if (pipe.spec.paused) return "the Deployment is paused";
      // A later write of the annotation or of the owner would count as a step.
      if (!isAdopted(pipe)) return "the pipe is not adopted yet";
      const sizes = pods.map(({ spec, status }) => {
        const actual = status?.containerStatuses?.find(({ name }) => name === "pipe")?.resources?.requests;
        const wanted = spec.containers.find(({ name }) => name === "pipe")?.resources?.requests;
        return [wanted, actual].map((each) => `${each?.["cpu"]} ${each?.["memory"]}`);
      });
      const areSized = sizes.length === replicas && sizes.flat().every((each) => each === size);
      return areSized ? undefined : `the pods have ${JSON.stringify(sizes)}`;
    };
    let last: string | undefined;
    const isSettled = async () => {
      last = await problem();
      return last === undefined || Promise.reject(new Error(last));
    };
    await waitFor(isSettled, { what: `the pipe to settle at ${size}`, timeoutMs: 90_000 });
    if (this.before.length === 0) this.before = await this.uids();
  }

  /** Expects that the status says why the pods were replaced. */
  async expectFallback(reason: FallbackReason, message = ""): Promise<void> {
    const { status } = await this.environment.scaling();
    expect(status?.pipes).toMatchObject({
      resizedBy: { [PIPE]: "Rollout" },
      fallbacks: [{ pipe: PIPE, reason, message: expect.stringContaining(message) }],
    });
    expect(status?.pipes).not.toHaveProperty("inPlace");
  }

  async uids(): Promise<readonly string[]> {
    return (await this.pods()).map(({ metadata }) => metadata.uid).sort();
  }

  /** Expects the original pods and ReplicaSet, and that no container restarted. */
  async expectNoRestart(): Promise<void> {
    expect(await this.uids()).toEqual(this.before);
    expect(await this.replicaSets()).toHaveLength(1);
    expect(await this.#restarts()).toEqual(this.before.map(() => 0));
  }

  async #restarts(): Promise<readonly (number | undefined)[]> {
    return (await this.pods()).map(({ status }) => status?.containerStatuses?.[0]?.restartCount);
  }
}
