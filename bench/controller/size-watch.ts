import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { DATABASE_TYPE, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { PIPE_SCALINGS } from "../../src/crd/names.ts";
import type { PipeScaling } from "../../src/crd/pipe-scaling.ts";
import { sizeOfQuantities } from "../../src/domain/quantity.ts";
import { type Identity, identityOf, type KubeObject } from "../../src/kube/objects.ts";
import { DEPLOYMENTS, PODS, type Resource } from "../../src/kube/paths.ts";
import type { Container, Pod } from "../../src/kube/pods.ts";
import type { Deployment } from "../../src/kube/workloads.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { Reflector } from "../../src/runtime/reflector.ts";
import { Store } from "../../src/runtime/store.ts";
import { PIPES_PER_SERVICE } from "./seed.ts";
import { type ControllerWorld, PIPES } from "./world.ts";

/** An object of a service, and the cores that it has; `undefined` while that changes. */
interface Sized extends KubeObject {
  readonly metadata: Identity;
  readonly serviceId: string;
  readonly cores: number | undefined;
}

const BY_SERVICE = "service";
const LOOK_MS = 250;

/**
 * Watches the objects of one kind, and records for each service when all of its objects have the expected size. This is
 * the time at which the last event arrives, so a measurement adds no requests.
 */
class KindWatch<Raw extends KubeObject> {
  readonly #store = new Store<Sized>({ [BY_SERVICE]: ({ serviceId }) => [serviceId] });
  readonly #reflector: Reflector<Sized, Raw>;
  readonly #perService: number;
  readonly #name: string;
  #cores = 0;
  #atMs = new Map<string, number>();

  constructor(
    { admin }: ControllerWorld,
    resource: Resource<Raw>,
    { perService, labelSelector, project }: KindOptions<Raw>,
  ) {
    this.#perService = perService;
    this.#name = resource.plural;
    this.#reflector = new Reflector<Sized, Raw>({
      client: admin,
      clock: systemClock,
      resource,
      namespace: PIPES,
      store: this.#store,
      project,
      ...(labelSelector === undefined ? {} : { labelSelector }),
      onProblem: (problem) => console.error(problem),
    });
    this.#store.onChange((change) =>
      this.#look((change.type === "deleted" ? change.previous : change.object).serviceId),
    );
  }

  async start(signal: AbortSignal): Promise<void> {
    void this.#reflector.run(signal);
    await this.#reflector.synced;
  }

  /** From now on, waits for this size. */
  expect(cores: number): void {
    this.#cores = cores;
    this.#atMs = new Map();
    for (const { serviceId } of this.#store.values()) this.#look(serviceId);
  }

  /** @returns the times of all services, ascending, in milliseconds since 1970 */
  async haveSize(services: number, timeoutMs: number, signal: AbortSignal): Promise<number[]> {
    const reached = () =>
      this.#atMs.size >= services || Promise.reject(new Error(`${this.#atMs.size} of ${services} services`));
    const what = `the ${this.#name} of ${services} services to have ${this.#cores} cores`;
    await waitFor(reached, { what, timeoutMs, intervalMs: LOOK_MS, signal });
    return [...this.#atMs.values()].sort((a, b) => a - b);
  }

  uids(): ReadonlySet<string> {
    return new Set([...this.#store.values()].map(({ metadata }) => metadata.uid));
  }

  #look(serviceId: string): void {
    if (this.#atMs.has(serviceId)) return;
    const objects = this.#store.by(BY_SERVICE, serviceId);
    const isSized = ({ cores }: Sized) => cores === this.#cores;
    if (objects.length >= this.#perService && objects.every(isSized)) this.#atMs.set(serviceId, Date.now());
  }
}

interface KindOptions<Raw> {
  /** Least number of objects of a service. */
  readonly perService: number;
  readonly labelSelector?: string;
  readonly project: (raw: Raw) => Sized;
}

/** Watches pods, templates and PipeScalings of pipes with one pod. Only PipeScalings are the controller's reports. */
export class SizeWatch {
  readonly pods: KindWatch<Pod>;
  readonly templates: KindWatch<Deployment>;
  /** Services whose PipeScaling is Ready. */
  readonly ready: KindWatch<PipeScaling & KubeObject>;
  readonly #end = new AbortController();

  private constructor(world: ControllerWorld) {
    const labelSelector = `${TYPE_LABEL}=${DATABASE_TYPE}`;
    const ofPipes = { perService: PIPES_PER_SERVICE, labelSelector };
    this.pods = new KindWatch(world, PODS, { ...ofPipes, project: sizedPod });
    this.templates = new KindWatch(world, DEPLOYMENTS, { ...ofPipes, project: sizedTemplate });
    this.ready = new KindWatch(world, PIPE_SCALINGS as Resource<PipeScaling & KubeObject>, {
      perService: 1,
      project: sizedScaling,
    });
  }

  static async start(world: ControllerWorld): Promise<SizeWatch> {
    const watch = new SizeWatch(world);
    await Promise.all(
      [watch.pods, watch.templates, watch.ready].map((each) => each.start(watch.#end.signal)),
    );
    return watch;
  }

  expect(cores: number): void {
    for (const each of [this.pods, this.templates, this.ready]) each.expect(cores);
  }

  stop(): void {
    this.#end.abort();
  }
}

/** The resources with which the container of a pod runs, as its kubelet reports them. */
function sizedPod({ metadata, status }: Pod): Sized {
  const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
  const isStable = isReady && metadata.deletionTimestamp === undefined;
  const [container] = status?.containerStatuses ?? [];
  return sized(metadata, isStable ? coresOf(container?.resources) : undefined);
}

/** A template that the Deployment controller has seen. */
function sizedTemplate({ metadata, spec, status }: Deployment): Sized {
  const isSeen = !spec.paused && status?.observedGeneration === metadata.generation;
  const [container] = spec.template.spec.containers;
  return sized(metadata, isSeen ? coresOf(container?.resources) : undefined);
}

function sizedScaling({ metadata, status }: PipeScaling & KubeObject): Sized {
  const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
  const cores = (status?.effective?.replicaCpuMillicores ?? 0) / 1000;
  return { metadata: identityOf(metadata), serviceId: metadata.name, cores: isReady ? cores : undefined };
}

function sized(metadata: KubeObject["metadata"], cores: number | undefined): Sized {
  return { metadata: identityOf(metadata), serviceId: metadata.labels?.[SERVICE_LABEL] ?? "", cores };
}

function coresOf(resources: Container["resources"]): number | undefined {
  const { cpu, memory } = resources?.requests ?? {};
  const size = sizeOfQuantities(cpu, memory);
  return size && size.cpuMillicores / 1000;
}
