import { expect } from "vitest";
import { REVISION_HASH_LABEL } from "../../../src/controller/names.ts";
import { HOLD } from "../../../src/controller/observe/workloads/stateful-set.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { ResizeStrategy } from "../../../src/domain/resize-strategy.ts";
import { formatSize, sizeOfCores } from "../../../src/domain/size.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import type { PodTemplate } from "../../../src/kube/pods.ts";
import type { StatefulSet } from "../../../src/kube/workloads.ts";
import { pipeStatefulSet, type StatefulSetOptions } from "../fixtures/pipe.ts";
import { amounts } from "../fixtures/pod.ts";
import { type Attempt, refusal } from "./cluster.ts";
import { workloadsOf } from "./in-place-scenario.ts";
import { idOf } from "./inputs.ts";
import type { ResizeOutcome } from "./kubelets.ts";
import { sizeOf } from "./ready-judge.ts";
import { targetOf } from "./selectors.ts";
import { Simulation } from "./simulation.ts";

const SECOND = 1000;
const REPLICAS = 3;
const TERMINATION_MS = 200;

interface HeldSetOptions extends Partial<StatefulSetOptions> {
  readonly strategy?: ResizeStrategy;
}

/** A service with the StatefulSet `a` on the simulated cluster. Something happens at a step of its resize in place. */
export class HeldSet {
  readonly simulation = new Simulation({ isInPlace: true });
  readonly #workloads = workloadsOf(this.simulation);
  readonly #set = this.#workloads.statefulSet;
  /** The partition with which the owner created the StatefulSet. */
  readonly #ownersPartition: number;

  private constructor(options: Partial<StatefulSetOptions>) {
    this.#ownersPartition = partitionIn(options);
    this.#workloads.scheduler.terminationMs = () => TERMINATION_MS;
    this.simulation.addService(1);
    const made = { name: "a", namespace: "pipes", serviceId: idOf(1), cores: 1, replicas: REPLICAS };
    this.#set.deploy(pipeStatefulSet({ ...made, ...options }));
  }

  /** Resolves when three pods run with one core, and the controller has seen them. */
  static async start({ strategy = "InPlaceOrRollout", ...options }: HeldSetOptions = {}): Promise<HeldSet> {
    const held = new HeldSet(options);
    await held.run(10 * SECOND);
    held.simulation.start(strategy);
    await held.run(5 * SECOND);
    held.request(1);
    await held.run(5 * SECOND);
    held.#set.replaced.length = 0;
    return held;
  }

  run(ms: number): Promise<void> {
    return this.simulation.run(ms);
  }

  request(cores: number): void {
    this.simulation.requestSize(1, cores);
  }

  /** Calls `act` when the first write of this step has reached the API server, which then applies it. */
  onArrival(step: string, act: () => void): void {
    const { cluster } = this.simulation;
    cluster.fault = (request, pipe) => {
      if (stepOf(request) !== step) return undefined;
      cluster.fault = () => undefined;
      act();
      return cluster.fault(request, pipe);
    };
  }

  /** Calls `act` once when all pods run with the size, before the controller can see it. */
  whenPodsRun(cores: number, act: () => void): void {
    const size = formatSize(sizeOfCores(cores));
    let isOver = false;
    this.simulation.cluster.onPod.push(() => {
      if (isOver || this.state().some(({ actual }) => actual !== size)) return;
      isOver = true;
      act();
    });
  }

  /** A policy refuses the writes to an object from now on, for example to `pods a-1`. */
  refuse(target: string): void {
    this.simulation.cluster.fault = (request) => {
      const { name, resource } = targetOf(request);
      const isRefused = request.method !== undefined && `${resource} ${name}` === target;
      return isRefused ? refusal("a policy says no") : undefined;
    };
  }

  /** From now on, no label of a pod reaches the API server. */
  loseLabels(): void {
    const { cluster } = this.simulation;
    cluster.fault = (request) =>
      stepOf(request)?.startsWith("label ") ? { error: new KubeUnreachableError("no response") } : undefined;
  }

  /** Pods must not be listed for this time. */
  forbidLists(ms: number): void {
    const { cluster, clock } = this.simulation;
    const untilMs = clock.monotonic() + ms;
    const message = 'pods is forbidden: User "a" cannot list resource "pods"';
    const error = new KubeApiError("GET", 403, JSON.stringify({ message }));
    cluster.fault = (request) => {
      const { name, resource } = targetOf(request);
      const isList = resource === "pods" && name === undefined;
      return isList && clock.monotonic() < untilMs ? { error } : undefined;
    };
  }

  /** Each write to objects of this resource takes so long from now on. */
  delay(resource: string, delayMs: number): void {
    const { cluster } = this.simulation;
    const { latencyMs } = cluster;
    cluster.latencyMs = (request) => {
      const isSlow = request.method === "PATCH" && targetOf(request).resource === resource;
      return isSlow ? delayMs : latencyMs(request);
    };
  }

  /** No request fails from now on. */
  heal(): void {
    this.simulation.cluster.fault = () => undefined;
  }

  /** A webhook removes our annotation from each write of the controller, from now on or no more. */
  stripAnnotation(isStripping = true): void {
    this.#set.isStripping = isStripping;
  }

  /** The owner patches the spec. */
  change(spec: object): void {
    this.#set.change(spec);
  }

  /** The owner sets labels of the StatefulSet; `null` removes one. */
  setLabels(labels: Readonly<Record<string, string | null>>): void {
    this.#set.setLabels(labels);
  }

  /** The kubelets defer all resizes from now on. */
  deferResizes(): void {
    this.#workloads.outcome = () => "Deferred";
  }

  /** The kubelets resize all pods from now on. */
  grantResizes(): void {
    this.#workloads.outcome = () => "Done";
    this.#workloads.look();
  }

  /** The kubelet of a pod resizes it no more. */
  keepSize(name: string, outcome: ResizeOutcome): void {
    this.#workloads.outcome = ({ metadata }) => (metadata.name === name ? outcome : "Done");
  }

  setImage(image: string): void {
    this.change({ template: { spec: { containers: [{ name: "pipe", image }] } } });
  }

  /** The owner sets a size in the template. */
  setSize(cores: number): void {
    const resources = amounts(sizeOfCores(cores));
    this.change({ template: { spec: { containers: [{ name: "pipe", resources }] } } });
  }

  /**
   * From now on, the owner sets this size in the template again whenever it had another one for some time.
   *
   * @returns how often the owner has done so
   */
  keepInTemplate(cores: number, delayMs: number): { readonly reverts: number } {
    const { cluster, clock } = this.simulation;
    const done = { reverts: 0 };
    const isReverted = () => this.#templateSize === formatSize(sizeOfCores(cores));
    let isWaiting = false;
    cluster.onStatefulSet.push(() => {
      if (isWaiting || isReverted()) return;
      isWaiting = true;
      clock.after(delayMs, () => {
        isWaiting = false;
        if (isReverted()) return;
        done.reverts += 1;
        this.setSize(cores);
      });
    });
    return done;
  }

  /** Another writer removes all entries of `managedFields` of the StatefulSet. */
  resetManagedFields(): void {
    this.#set.resetManagedFields();
  }

  /** The controller manager is away. */
  stopControllerManager(ms: number): void {
    this.#set.down(ms);
  }

  /** Somebody deletes a pod, or Kubernetes does. */
  deletePod(name: string, graceMs: number): void {
    this.#workloads.deletePod(name, graceMs);
  }

  /** The container of a pod ends for a reason, and starts again after this time. */
  crash(name: string, stopMs: number, reason?: string): void {
    this.#workloads.crash(name, stopMs, reason);
  }

  /** The readiness probe of a running pod begins to fail, or to succeed. */
  probe(name: string, isReady: boolean): void {
    this.#workloads.kubelets.probe(name, isReady);
  }

  /** Calls `act` once when a pod runs with the size, before the controller can see it. */
  whenFirstPodRuns(cores: number, act: () => void): void {
    const size = formatSize(sizeOfCores(cores));
    let isOver = false;
    this.simulation.cluster.onPod.push(() => {
      if (isOver || this.state().every(({ actual }) => actual !== size)) return;
      isOver = true;
      act();
    });
  }

  /** The writes that the controller tried, except dry runs and those to the status of the PipeScaling. */
  writes(): readonly Attempt[] {
    return this.simulation.cluster.attempts.filter(
      ({ target, isDryRun }) => !isDryRun && !target.startsWith("pipescalings/status"),
    );
  }

  get ready() {
    return this.simulation.status(1).conditions?.find(({ type }) => type === "Ready");
  }

  /** The pods that the controller deleted. */
  deleted(): readonly string[] {
    return this.simulation.cluster.writes.filter((line) => line.endsWith(" deleted"));
  }

  /** The pods that Kubernetes replaced because of their template. */
  replaced(): readonly string[] {
    return this.#set.replaced;
  }

  get #object(): StatefulSet {
    const { object } = this.#set;
    if (!object) throw new Error("the StatefulSet is gone");
    return object;
  }

  get #templateSize() {
    return sizeOf(this.#object.spec.template.spec.containers[0]);
  }

  get isHeld(): boolean {
    return this.#partition >= HOLD && this.#partition !== this.#ownersPartition;
  }

  get #partition(): number {
    return partitionIn(this.#object.spec);
  }

  /** The partitions that the StatefulSet has from now on. */
  partitions(): ReadonlySet<number> {
    const seen = new Set([this.#partition]);
    this.simulation.cluster.onStatefulSet.push(({ spec }) => seen.add(partitionIn(spec)));
    return seen;
  }

  /** The fields of the StatefulSet that the controller owns. */
  ownFields() {
    const { managedFields = [] } = this.#object.metadata;
    return managedFields.filter(({ manager }) => manager === CONTROLLER_FIELD_MANAGER);
  }

  /** The UID, image, size and revision of each pod. */
  state() {
    return [...this.#workloads.pods.values()].map(({ metadata, spec, status }) => ({
      name: metadata.name,
      uid: metadata.uid,
      image: imageOf(spec),
      size: sizeOf(spec.containers[0]),
      actual: sizeOf(status?.containerStatuses?.[0]),
      revision: metadata.labels?.[REVISION_HASH_LABEL],
    }));
  }

  uids(): readonly string[] {
    return this.state().map(({ uid }) => uid);
  }

  /** Pods whose label names the revision of a template that they do not have. */
  mislabeled(): readonly string[] {
    return this.state()
      .filter(({ revision = "", image }) => {
        const template = this.#set.templateOf(revision);
        return template !== undefined && imageOf(template.spec) !== image;
      })
      .map(({ name }) => name);
  }

  /** Expects that the template, all pods and the status have the size, and that nothing is held. */
  expectSettled(cores: number): void {
    const size = formatSize(sizeOfCores(cores));
    const { ready } = this;
    expect({
      violations: this.simulation.cluster.violations,
      ready: ready?.status,
      message: ready?.message,
      template: this.#templateSize,
      pods: this.state().map((each) => [each.size, each.actual]),
      isHeld: this.isHeld,
      mislabeled: this.mislabeled(),
      deleted: this.deleted(),
    }).toEqual({
      violations: [],
      ready: "True",
      message: expect.anything(),
      template: size,
      pods: Array.from({ length: this.#object.spec.replicas ?? 1 }, () => [size, size]),
      isHeld: false,
      mislabeled: [],
      deleted: [],
    });
  }
}

/** Returns the step of a commit that a request makes; `undefined` if it makes none. */
function stepOf({ method, query, ...request }: KubeRequest): string | undefined {
  if (method !== "PATCH" || query?.["dryRun"] !== undefined) return undefined;
  const { resource, name } = targetOf(request);
  if (resource === "pods") return `label ${name}`;
  if (resource !== "statefulsets") return undefined;
  const body = JSON.stringify(request.body);
  if (/"partition":\d{10}/.test(body)) return "hold";
  return body.includes('"partition":') && !body.includes('"template":{"spec"') ? "release" : undefined;
}

function partitionIn({ updateStrategy }: Pick<StatefulSet["spec"], "updateStrategy">): number {
  return updateStrategy?.rollingUpdate?.partition ?? 0;
}

function imageOf({ containers: [container] }: Pick<PodTemplate["spec"], "containers">): unknown {
  return container && "image" in container ? container.image : undefined;
}
