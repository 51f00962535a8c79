import * as z from "zod";
import { createReconciler, type ReconcilerSetup } from "../../../src/controller/create-reconciler.ts";
import { RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import { createCaches } from "../../../src/controller/observe/caches.ts";
import { toDeploymentView } from "../../../src/controller/observe/deployment-view.ts";
import { toPipeScalingView } from "../../../src/controller/observe/pipe-scaling-view.ts";
import { TIMEOUTS } from "../../../src/controller/timeouts.ts";
import type { Condition } from "../../../src/crd/pipe-scaling.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";
import { type ConfigMap, type Container, type Deployment, identityOf } from "../../../src/kube/objects.ts";
import { parseOrganization } from "../../../src/records/organization.ts";
import { parseService } from "../../../src/records/service.ts";
import type { Clock } from "../../../src/runtime/clock.ts";
import type { Event } from "../../../src/runtime/event-recorder.ts";
import type { ReflectorClient } from "../../../src/runtime/list-watch.ts";
import { WorkQueue } from "../../../src/runtime/work-queue.ts";
import { runWorkers } from "../../../src/runtime/workers.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { type PipeOptions, pipeDeployment } from "../fixtures/pipe.ts";
import { organizationRecord, serviceRecord } from "../fixtures/records.ts";
import { POLICY } from "../fixtures/snapshot.ts";
import { TIERS } from "../fixtures/tiers.ts";
import { SimulatedCluster } from "./cluster.ts";

const RECORDS = "records";
const PIPES = "pipes";
const ORGANIZATION = idOf(0);

const NO_METRICS = {
  ...{ passed: () => undefined, reported: () => undefined, podEnded: () => undefined },
  ...{ wasDeferred: () => undefined, fellBack: () => undefined },
};
const LOG_LINE = z.object({ pipe: z.string().optional(), reason: z.string().optional(), msg: z.string() });

export interface SimulationOptions {
  readonly mostRollouts?: number;
  /** Lead of the controller's clock over the cluster's; negative if it is behind. */
  readonly skewMs?: number;
  /** Pipes are resized in place, and pods are simulated. */
  readonly isInPlace?: boolean;
  readonly metrics?: ReconcilerSetup["metrics"];
}

/** The controller, with its queue, caches and bounds, on a simulated cluster. */
export class Simulation {
  readonly rolloutTimeoutMs = POLICY.rolloutTimeoutMs;
  readonly cluster: SimulatedCluster;
  readonly clock: FakeClock;
  /** Why pipes were not resized in place. */
  readonly fallbacks: string[] = [];
  readonly events: Event[] = [];
  /** Runs of the reconcile function so far. */
  reconciliations = 0;
  readonly #options: SimulationOptions;
  readonly #records = new Map<string, ConfigMap>();
  #caches = createCaches();
  #abort = new AbortController();

  constructor(options: SimulationOptions = {}) {
    this.#options = options;
    this.cluster = new SimulatedCluster(this.rolloutTimeoutMs, { hasPods: options.isInPlace ?? false });
    this.clock = this.cluster.clock;
    this.setTier("basic");
  }

  setTier(tier: string, data: Readonly<Record<string, string>> = {}): void {
    const record = organizationRecord({ id: ORGANIZATION, tier });
    this.#record({ ...record, data: { ...record.data, ...data } });
  }

  addService(service: number, data: Readonly<Record<string, string>> = {}): void {
    const record = serviceRecord({ id: idOf(service), organizationId: ORGANIZATION, namespace: PIPES });
    this.#record({ ...record, data: { ...record.data, ...data } });
  }

  /** Deploys a running pipe, by default of one core. */
  deploy(name: string, service: number, options: Partial<PipeOptions> = {}): void {
    const serviceId = idOf(service);
    this.cluster.deploy(pipeDeployment({ name, namespace: PIPES, serviceId, cores: 1, ...options }));
  }

  /** Another writer replaces the Deployment with a manifest without our annotation. */
  replace(name: string, manifest: Pick<Deployment, "spec">): void {
    this.cluster.replace(name, manifest);
  }

  /** Like `kubectl rollout undo`: restores the template and the annotations of an earlier revision. */
  undo(name: string): void {
    this.cluster.undo(name);
  }

  setImage(name: string, image: string): void {
    this.cluster.change(name, { template: { spec: { containers: [{ name: "pipe", image }] } } });
  }

  /** A change by the owner or another writer. */
  setResources(name: string, resources: Container["resources"]): void {
    this.cluster.change(name, { template: { spec: { containers: [{ name: "pipe", resources }] } } });
  }

  requestSize(service: number, cores: number): void {
    const { cpuMillicores, memoryGib } = sizeOfCores(cores);
    this.cluster.patchScaling(idOf(service), {
      replicaCpuMillicores: cpuMillicores,
      replicaMemoryGb: memoryGib,
    });
  }

  suspend(service: number, suspend: boolean): void {
    this.cluster.patchScaling(idOf(service), { suspend });
  }

  /** @param inMs from now on */
  askToRetry(service: number, inMs = 0): void {
    const at = new Date(this.clock.now() + inMs).toISOString();
    this.cluster.patchScaling(idOf(service), undefined, { [RETRY_ANNOTATION]: at });
  }

  status(service: number) {
    return this.cluster.scalings.get(idOf(service))?.status ?? {};
  }

  /** The generation of a service's PipeScaling. */
  generation(service: number): number | undefined {
    return this.cluster.scalings.get(idOf(service))?.metadata.generation;
  }

  /** The most important condition. */
  condition(service: number): Condition | undefined {
    return this.status(service).conditions?.at(-1);
  }

  sizes(...names: string[]): string[] {
    return names.map((name) => this.cluster.sizeOf(name));
  }

  /** Deletes a service's PipeScaling. */
  removeScaling(service: number): void {
    this.cluster.removeScaling(idOf(service));
  }

  hasScaling(service: number): boolean {
    return this.cluster.scalings.has(idOf(service));
  }

  run(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Replaces the controller with a new one that knows only the cluster. */
  start(): void {
    this.#abort.abort();
    this.#abort = new AbortController();
    this.#caches = createCaches();
    const { cluster, events } = this;
    const { mostRollouts = 50, isInPlace = false } = this.#options;
    const resizeStrategy = isInPlace ? ("InPlaceOrRollout" as const) : ("Rollout" as const);
    const policy = { ...POLICY, maxConcurrentRollouts: mostRollouts, resizeStrategy };
    const clock = this.#skewedClock();
    const caches = this.#caches;
    const { signal } = this.#abort;
    const queue = new WorkQueue({
      clock,
      minIntervalMs: 100,
      retryFirstMs: 50,
      retryMostMs: 60_000,
      random: () => 0.5,
    });
    const client: ReflectorClient = {
      json: (request) => cluster.json({ ...request, signal: request.signal ?? signal }),
      stream: (request) => cluster.stream(request),
    };
    const { reconciler, resizes, deletedScalings } = createReconciler({
      ...{ client, clock, caches, queue, policy, namespace: RECORDS, tiers: TIERS },
      timeouts: TIMEOUTS,
      metrics: this.#options.metrics ?? NO_METRICS,
      log: createLogger("info", "controller", { write: (line) => this.#noteFallback(line) }),
      events: { record: (event) => events.push(event) },
      assertMayWrite: () => undefined,
    });
    signal.addEventListener("abort", () => resizes.endAll());
    this.#watch();
    deletedScalings.begin();
    const reconcile = (serviceId: string) => {
      this.reconciliations += 1;
      return reconciler.reconcile(serviceId);
    };
    void runWorkers({ queue, concurrency: 16, reconcile, onFailure: () => undefined }, signal);
  }

  #noteFallback(line: string): void {
    const { pipe, reason, msg } = LOG_LINE.parse(JSON.parse(line));
    if (msg.startsWith("the pipe is not resized in place")) this.fallbacks.push(`${pipe} ${reason}`);
  }

  #skewedClock(): Clock {
    const { clock } = this;
    return {
      now: () => clock.now() + (this.#options.skewMs ?? 0),
      monotonic: () => clock.monotonic(),
      after: (delayMs, callback) => clock.after(delayMs, callback),
    };
  }

  stop(): void {
    this.#abort.abort();
  }

  #watch(): void {
    const { scalings, pipes } = this.#caches;
    const { cluster } = this;
    cluster.watcher = {
      pipe: (object) => pipes.apply(toDeploymentView(object)),
      pipeGone: (object) => pipes.remove(toDeploymentView(object)),
      scaling: (object) => scalings.apply(toPipeScalingView(object)),
      scalingGone: (object) => scalings.remove(toPipeScalingView(object)),
    };
    for (const record of this.#records.values()) this.#notify(record);
    for (const scaling of cluster.scalings.values()) cluster.watcher.scaling(scaling);
    for (const pipe of cluster.deployments.values()) cluster.watcher.pipe(pipe);
  }

  #record(made: Pick<ConfigMap, "data"> & { readonly metadata: { readonly name: string } }): void {
    const { name } = made.metadata;
    const stamps = { namespace: RECORDS, uid: name, resourceVersion: this.cluster.next() };
    const record = { ...made, metadata: { ...made.metadata, ...stamps } };
    this.#records.set(name, record);
    this.#notify(record);
  }

  #notify({ metadata, data }: ConfigMap): void {
    const { organizations, services } = this.#caches;
    const { name, labels } = metadata;
    if (name.startsWith("organization-"))
      organizations.apply({ metadata: identityOf(metadata), record: parseOrganization(name, data) });
    else services.apply({ metadata: identityOf(metadata), record: parseService(name, labels, data) });
  }
}

function idOf(service: number): string {
  return `00000000-0000-4000-8000-${String(service).padStart(12, "0")}`;
}
