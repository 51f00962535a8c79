import { expect } from "vitest";
import { createReconciler } from "../../../src/controller/create-reconciler.ts";
import { REVISION_HASH_LABEL, SERVICE_LABEL } from "../../../src/controller/names.ts";
import { createCaches } from "../../../src/controller/observe/caches.ts";
import { toPipeScalingView } from "../../../src/controller/observe/pipe-scaling-view.ts";
import { toPodView } from "../../../src/controller/observe/pod-view.ts";
import { toStatefulPipeView } from "../../../src/controller/observe/workloads/stateful-set.ts";
import { TIMEOUTS } from "../../../src/controller/timeouts.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { PipeScaling } from "../../../src/crd/pipe-scaling.ts";
import type { ResizeStrategy } from "../../../src/domain/resize-strategy.ts";
import { formatSize, sizeOfCores } from "../../../src/domain/size.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import { type ConfigMap, identityOf, type KubeObject } from "../../../src/kube/objects.ts";
import type { Pod, PodTemplate } from "../../../src/kube/pods.ts";
import type { StatefulSet } from "../../../src/kube/workloads.ts";
import { parseOrganization } from "../../../src/records/organization.ts";
import { parseService } from "../../../src/records/service.ts";
import { WorkQueue } from "../../../src/runtime/work-queue.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { FakeClock } from "../fakes/fake-clock.ts";
import { aNode } from "../fixtures/node.ts";
import { pipeStatefulSet, type StatefulSetOptions } from "../fixtures/pipe.ts";
import { amounts } from "../fixtures/pod.ts";
import { organizationRecord, serviceRecord } from "../fixtures/records.ts";
import { POLICY } from "../fixtures/snapshot.ts";
import { TIERS } from "../fixtures/tiers.ts";
import { idOf, RECORDS } from "./inputs.ts";
import { managedFieldsAfter, type Writer } from "./managed-fields.ts";
import { checked, isSame, parsed, type ScalingObject, timeAt } from "./objects.ts";
import { patched } from "./patch.ts";
import { readiness, runningWith, type SimulatedPod, withConditions } from "./pod-status.ts";
import { sizeOf } from "./ready-judge.ts";
import { selectionOf, targetOf } from "./selectors.ts";
import { SimulatedStatefulSets } from "./stateful-sets.ts";

const SECOND = 1000;
const ORGANIZATION = idOf(0);
const PIPES = "pipes";
const US: Writer = { manager: CONTROLLER_FIELD_MANAGER };
const OWNER: Writer = { manager: "owner" };
const KUBELET_MS = 30;

interface HeldSetOptions extends Partial<StatefulSetOptions> {
  readonly strategy?: ResizeStrategy;
}

/** The whole controller, and one service with the StatefulSet `a` on a simulated API server, in virtual time. */
export class HeldSet {
  readonly clock = new FakeClock();
  readonly pods = new Map<string, SimulatedPod>();
  readonly kubernetes: SimulatedStatefulSets;
  /** Writes that reached the API server: the resource, the name, and the body. */
  readonly writes: { readonly target: string; readonly body: string; readonly atMs: number }[] = [];
  /** Ready pods that the controller deleted. */
  readonly deleted: string[] = [];
  latencyMs: (request: KubeRequest) => number = () => 5;
  fault: (request: KubeRequest) => Error | undefined = () => undefined;
  /** Called before each write that the API server receives. */
  onWrite: (step: string) => void = () => undefined;
  /** Returns true if a pod becomes ready. */
  isHealthy: (pod: Pod) => boolean = () => true;
  set: StatefulSet | undefined;
  scaling: ScalingObject | undefined;
  readonly #strategy: ResizeStrategy;
  readonly #records = new Map<string, ConfigMap>();
  #caches = createCaches();
  #work = new AbortController();
  #abort = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #version = 100;

  private constructor({ strategy = "InPlaceOrRollout", ...options }: HeldSetOptions) {
    this.#strategy = strategy;
    this.kubernetes = new SimulatedStatefulSets({
      clock: this.clock,
      set: () => this.set,
      pods: this.pods,
      putStatus: (status) => this.#putStatus(status),
      create: (name, revision, template) => this.#create(name, revision, template),
      remove: (name) => this.endPod(name),
    });
    this.addService(1);
    this.#record(organizationRecord({ id: ORGANIZATION, tier: "basic" }));
    this.deploy(options);
  }

  /** Resolves when three pods run with one core, and the controller has seen them. */
  static async start(options: HeldSetOptions = {}): Promise<HeldSet> {
    const held = new HeldSet(options);
    await held.run(10 * SECOND);
    held.start();
    await held.run(5 * SECOND);
    held.request(1);
    await held.run(5 * SECOND);
    held.kubernetes.replaced.length = 0;
    return held;
  }

  run(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Creates the StatefulSet, with another UID than one before. */
  deploy(options: HeldSetOptions = {}): void {
    const { strategy: _, ...rest } = options;
    const made = pipeStatefulSet({
      name: "a",
      namespace: PIPES,
      serviceId: idOf(1),
      resources: amounts(sizeOfCores(1)),
      replicas: 3,
      ...rest,
    });
    const version = this.#next();
    const at = timeAt(this.clock.now());
    const metadata = { ...made.metadata, uid: `uid-${version}`, resourceVersion: version, generation: 1 };
    const object: StatefulSet = { ...made, metadata: { ...metadata, creationTimestamp: at } };
    const managedFields = managedFieldsAfter(undefined, object, OWNER, at) ?? [];
    this.#putSet({ ...object, metadata: { ...object.metadata, managedFields } });
  }

  /** Deletes the StatefulSet. @param orphan its pods stay */
  remove({ orphan = false } = {}): void {
    const { set } = this;
    if (!set) return;
    this.set = undefined;
    if (isPipe(set)) this.#caches.pipes.remove(toStatefulPipeView(this.#newer(set)));
    this.kubernetes.changed();
    for (const pod of this.#podsOf(set.metadata.uid)) {
      const { ownerReferences: _, ...metadata } = pod.metadata;
      if (orphan) this.putPod({ ...pod, metadata });
      else this.endPod(pod.metadata.name);
    }
  }

  request(cores: number): void {
    const { cpuMillicores, memoryGib } = sizeOfCores(cores);
    this.patchScaling({ replicaCpuMillicores: cpuMillicores, replicaMemoryGb: memoryGib });
  }

  patchScaling(spec: Readonly<Record<string, unknown>>): void {
    const before = this.scaling;
    if (!before) return;
    const generation = (before.metadata.generation ?? 0) + 1;
    this.#putScaling(
      parsed(patched({ ...before, metadata: { ...before.metadata, generation } }, { spec }, false)),
    );
  }

  removeScaling(): void {
    const { scaling } = this;
    this.scaling = undefined;
    if (scaling) this.#caches.scalings.remove(toPipeScalingView(this.#newer(scaling)));
  }

  addService(service: number): void {
    this.#record(serviceRecord({ id: idOf(service), organizationId: ORGANIZATION, namespace: PIPES }));
  }

  /** The records of the service are deleted. */
  removeService(): void {
    for (const [name, made] of this.#records) {
      if (name.startsWith("organization-")) continue;
      this.#records.delete(name);
      const gone = this.#newer(made);
      this.#caches.services.remove(gone);
    }
  }

  /** The fields of the StatefulSet that the controller owns. */
  ownFields() {
    const { managedFields = [] } = this.set?.metadata ?? {};
    return managedFields.filter(({ manager }) => manager === CONTROLLER_FIELD_MANAGER);
  }

  /** A policy refuses the writes to an object from now on, for example to `pods a-1`. */
  refuse(target: string): void {
    this.fault = (request) => {
      const { name, resource } = targetOf(request);
      const isRefused = request.method !== undefined && `${resource} ${name}` === target;
      return isRefused
        ? new KubeApiError("PATCH", 422, JSON.stringify({ message: "a policy says no" }))
        : undefined;
    };
  }

  /** Calls `act` when the first write of this step has reached the API server, before its effect. */
  once(step: string, act: () => void): void {
    this.onWrite = (each) => {
      if (each !== step) return;
      this.onWrite = () => undefined;
      act();
    };
  }

  /** Expects that the template, all pods and the status have the size, and that nothing is held. */
  expectSettled(cores: number, replicas = 3): void {
    const size = formatSize(sizeOfCores(cores));
    expect({
      ready: this.ready?.status,
      message: this.ready?.message,
      template: sizeOf(this.set?.spec.template.spec.containers[0]),
      pods: this.state().map((each) => [each.size, each.actual]),
      isHeld: this.isHeld,
      mislabeled: this.mislabeled(),
      deleted: this.deleted,
    }).toEqual({
      ready: "True",
      message: expect.anything(),
      template: size,
      pods: Array.from({ length: replicas }, () => [size, size]),
      isHeld: false,
      mislabeled: [],
      deleted: [],
    });
  }

  /** The owner patches the spec. */
  change(spec: object): void {
    if (this.set) this.#putSet(this.#write(this.set, { spec }, OWNER));
  }

  setImage(image: string): void {
    this.change({ template: { spec: { containers: [{ name: "pipe", image }] } } });
  }

  /** Like `kubectl rollout restart`. */
  restartPods(): void {
    const at = timeAt(this.clock.now());
    this.change({ template: { metadata: { annotations: { "kubectl.kubernetes.io/restartedAt": at } } } });
  }

  setLabels(labels: Readonly<Record<string, string | null>>): void {
    if (this.set) this.#putSet(this.#write(this.set, { metadata: { labels } }, OWNER));
  }

  move(service: number): void {
    this.setLabels({ [SERVICE_LABEL]: idOf(service) });
  }

  /** Somebody deletes a pod, or Kubernetes does. */
  endPod(name: string, graceMs = 200): boolean {
    const pod = this.pods.get(name);
    if (!pod || pod.metadata.deletionTimestamp !== undefined) return false;
    const deletionTimestamp = timeAt(this.clock.now() + graceMs);
    this.putPod({ ...pod, metadata: { ...pod.metadata, deletionTimestamp } });
    this.clock.after(graceMs, () => {
      if (this.pods.get(name)?.metadata.uid !== pod.metadata.uid) return;
      this.pods.delete(name);
      this.#caches.pods.remove(toPodView(this.#newer(pod)));
      this.kubernetes.changed();
    });
    return true;
  }

  /** The container of a pod crashes, and is not ready for a while. */
  crash(name: string, stopMs = 2 * SECOND): void {
    const pod = this.pods.get(name);
    if (!pod?.status?.containerStatuses) return;
    const { uid } = pod.metadata;
    const restartCount = (pod.status.containerStatuses[0]?.restartCount ?? 0) + 1;
    this.putPod({
      ...pod,
      status: withConditions(pod.status, { Ready: readiness(false, timeAt(this.clock.now())) }),
    });
    this.clock.after(stopMs, () => {
      const now = this.pods.get(name);
      if (now?.metadata.uid !== uid || now.metadata.deletionTimestamp) return;
      const lastState = {
        terminated: { exitCode: 1, reason: "Error", finishedAt: timeAt(this.clock.now()) },
      };
      const running = runningWith(now, restartCount);
      const containerStatuses = running.containerStatuses.map((each) => ({ ...each, lastState }));
      this.putPod({
        ...now,
        status: withConditions(
          { ...now.status, ...running, containerStatuses },
          { Ready: readiness(true, timeAt(this.clock.now())) },
        ),
      });
    });
  }

  start(): void {
    this.stop();
    this.#abort = new AbortController();
    this.#work = new AbortController();
    this.#caches = createCaches();
    const { clock } = this;
    const { signal } = this.#abort;
    const queue = new WorkQueue({
      clock,
      minIntervalMs: 100,
      retryFirstMs: 50,
      retryMostMs: 60_000,
      random: () => 0.5,
    });
    const { work } = createReconciler({
      client: {
        json: (request) => this.#json({ ...request, signal: request.signal ?? signal }),
      },
      clock,
      caches: this.#caches,
      queue,
      policy: { ...POLICY, resizeStrategy: this.#strategy },
      namespace: RECORDS,
      tiers: TIERS,
      concurrency: 16,
      timeouts: { ...TIMEOUTS, adoptMs: 0 },
      metrics: { passed: () => undefined, reported: () => undefined },
      log: createLogger("info", "controller", { write: () => undefined }),
      events: { record: () => undefined },
      assertMayWrite: () => undefined,
      isLeader: () => !signal.aborted,
      podsProblem: () => undefined,
      pipeNamespaces: [],
      onProblem: () => undefined,
      onEtcdRollback: () => undefined,
      onFailure: () => undefined,
      onReconciled: () => undefined,
    });
    for (const record of this.#records.values()) this.#onRecord(record);
    if (this.scaling) this.#caches.scalings.apply(toPipeScalingView(this.scaling));
    if (this.set && isPipe(this.set)) this.#caches.pipes.apply(toStatefulPipeView(this.set));
    for (const pod of this.pods.values()) this.#caches.pods.apply(toPodView(pod));
    this.#ended = work(this.#work.signal);
  }

  /** Kills the controller. */
  stop(): void {
    this.#abort.abort();
    this.#work.abort();
  }

  /** Sends SIGTERM to the controller. Resolves when it has ended what it must not leave unfinished. */
  async terminate(): Promise<void> {
    this.#work.abort();
    await this.#ended;
    this.stop();
  }

  get isHeld(): boolean {
    return (this.set?.spec.updateStrategy?.rollingUpdate?.partition ?? 0) >= 1_000_000_000;
  }

  get ready() {
    return this.scaling?.status?.conditions?.find(({ type }) => type === "Ready");
  }

  view() {
    return this.set && toStatefulPipeView(this.set);
  }

  /** The UID, image, size and revision of each pod. */
  state() {
    return [...this.pods.values()].map(({ metadata, spec, status }) => ({
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
        const template = this.kubernetes.templateOf(revision);
        return template !== undefined && imageOf(template.spec) !== image;
      })
      .map(({ name }) => name);
  }

  sizeOfTemplate(): string {
    return sizeOf(this.set?.spec.template.spec.containers[0]);
  }

  size(cores: number): string {
    return formatSize(sizeOfCores(cores));
  }

  putPod(pod: SimulatedPod): SimulatedPod {
    const before = this.pods.get(pod.metadata.name);
    const stored = this.#newer(pod);
    this.pods.set(pod.metadata.name, stored);
    this.#caches.pods.apply(toPodView(stored));
    this.kubernetes.changed();
    if (before && !isSame(before.spec, stored.spec))
      this.clock.after(KUBELET_MS, () => this.#resized(stored));
    return stored;
  }

  #next(): string {
    this.#version += 1;
    return `${this.#version}`;
  }

  #newer<T extends KubeObject>(object: T): T {
    return { ...object, metadata: { ...object.metadata, resourceVersion: this.#next() } };
  }

  #record(made: Pick<ConfigMap, "data"> & { readonly metadata: { readonly name: string } }): void {
    const { name } = made.metadata;
    const record = {
      ...made,
      metadata: { ...made.metadata, namespace: RECORDS, uid: name, resourceVersion: this.#next() },
    };
    this.#records.set(name, record);
    this.#onRecord(record);
  }

  #onRecord({ metadata, data }: ConfigMap): void {
    const { organizations, services } = this.#caches;
    const { name, labels } = metadata;
    if (name.startsWith("organization-"))
      organizations.apply({ metadata: identityOf(metadata), record: parseOrganization(name, data) });
    else services.apply({ metadata: identityOf(metadata), record: parseService(name, labels, data) });
  }

  #putScaling(scaling: ScalingObject): ScalingObject {
    this.scaling = this.#newer(scaling);
    this.#caches.scalings.apply(toPipeScalingView(this.scaling));
    return this.scaling;
  }

  #putSet(set: StatefulSet): StatefulSet {
    const before = this.set;
    this.set = set;
    if (isPipe(set)) this.#caches.pipes.apply(toStatefulPipeView(set));
    else if (before && isPipe(before)) this.#caches.pipes.remove(toStatefulPipeView(set));
    this.kubernetes.changed();
    return set;
  }

  #putStatus(status: NonNullable<StatefulSet["status"]>): void {
    const { set } = this;
    if (!set || isSame(set.status, status)) return;
    const { managedFields = [], ...metadata } = set.metadata;
    const others = managedFields.filter(({ subresource }) => subresource !== "status");
    const entry = { manager: "kube-controller-manager", operation: "Update", subresource: "status" };
    const reported = { ...entry, time: timeAt(this.clock.now()) };
    this.#putSet(
      this.#newer({ ...set, metadata: { ...metadata, managedFields: [...others, reported] }, status }),
    );
  }

  #podsOf(uid: string): readonly SimulatedPod[] {
    return [...this.pods.values()].filter(({ metadata }) => metadata.ownerReferences?.[0]?.uid === uid);
  }

  #create(name: string, revision: string, template: PodTemplate): void {
    const { set } = this;
    if (!set || this.pods.has(name)) return;
    const at = timeAt(this.clock.now());
    const uid = `uid-${name}-${this.#next()}`;
    const made: SimulatedPod = {
      metadata: {
        name,
        namespace: PIPES,
        uid,
        resourceVersion: "",
        generation: 1,
        creationTimestamp: at,
        labels: { ...template.metadata?.labels, [REVISION_HASH_LABEL]: revision },
        annotations: {},
        ownerReferences: [{ kind: "StatefulSet", name: "a", uid: set.metadata.uid }],
      },
      spec: { ...template.spec, nodeName: "node" },
      status: { phase: "Pending" },
    };
    this.putPod(made);
    this.clock.after(500, () => {
      const pod = this.pods.get(name);
      if (pod?.metadata.uid !== uid || pod.metadata.deletionTimestamp || !this.isHealthy(pod)) return;
      const status = {
        ...pod.status,
        ...runningWith(pod, 0),
        observedGeneration: pod.metadata.generation ?? 1,
      };
      this.putPod({
        ...pod,
        status: withConditions(status, { Ready: readiness(true, timeAt(this.clock.now())) }),
      });
    });
  }

  /** The kubelet makes a resize. */
  #resized({ metadata }: SimulatedPod): void {
    const pod = this.pods.get(metadata.name);
    if (pod?.metadata.uid !== metadata.uid || !pod.status?.containerStatuses) return;
    const status = { ...pod.status, ...runningWith(pod), observedGeneration: pod.metadata.generation ?? 0 };
    this.putPod({ ...pod, status });
  }

  #write(
    before: StatefulSet,
    patch: { readonly metadata?: object; readonly spec?: object },
    writer: Writer,
    records = before.metadata.managedFields,
  ): StatefulSet {
    const merged: StatefulSet = parsed(patched(before, patch, true));
    const after: StatefulSet = {
      ...merged,
      metadata: { ...merged.metadata, ...(records && { managedFields: records }) },
    };
    const generation = (before.metadata.generation ?? 0) + (isSame(before.spec, after.spec) ? 0 : 1);
    const recorded = {
      ...before,
      metadata: { ...before.metadata, ...(records && { managedFields: records }) },
    };
    const managedFields = managedFieldsAfter(recorded, after, writer, timeAt(this.clock.now())) ?? [];
    return this.#newer({ ...after, metadata: { ...after.metadata, generation, managedFields } });
  }

  async #json<T>(request: KubeRequest): Promise<T> {
    await new Promise<void>((resolve) => this.clock.after(this.latencyMs(request), resolve));
    if (request.signal?.aborted) throw new Error("the client has ended");
    const isDryRun = request.query?.["dryRun"] !== undefined;
    const isWrite = (request.method ?? "GET") !== "GET" && !isDryRun;
    const { name = "", resource } = targetOf(request);
    if (isWrite) this.onWrite(stepOf(request));
    const fault = this.fault(request);
    if (fault) throw fault;
    if (isWrite && resource !== "pipescalings/status")
      this.writes.push({
        target: `${resource} ${name}`,
        body: JSON.stringify(request.body),
        atMs: this.clock.monotonic(),
      });
    return parsed(this.#respond(request, isDryRun));
  }

  #respond(request: KubeRequest, isDryRun: boolean): unknown {
    const { method = "GET", body } = request;
    const { name = "", plural, resource } = targetOf(request);
    if (method === "GET") {
      const items = this.#objects(plural).filter(selectionOf(request));
      return name
        ? items.find(({ metadata }) => metadata.name === name)
        : { metadata: { resourceVersion: this.#next() }, items };
    }
    const written: KubeObject & { readonly spec?: object; readonly preconditions?: object } = parsed(body);
    if (plural === "pipescalings") return this.#callScaling(method, written);
    if (method === "DELETE") {
      const pod = checked(this.pods.get(name), written.preconditions ?? {}, method);
      if (pod.status?.conditions?.some((each) => each.type === "Ready" && each.status === "True"))
        this.deleted.push(name);
      this.endPod(name);
      return pod;
    }
    if (plural === "pods") return this.#patchPod(name, resource, written, isDryRun);
    const before = checked(this.set, written.metadata);
    const { annotations = {}, managedFields } = written.metadata;
    const patch = { metadata: { annotations }, ...(written.spec ? { spec: written.spec } : {}) };
    const after = this.#write(before, patch, US, managedFields ?? before.metadata.managedFields);
    return isDryRun ? after : this.#putSet(after);
  }

  #patchPod(
    name: string,
    resource: string,
    { metadata, spec = {} }: KubeObject & { readonly spec?: object },
    isDryRun: boolean,
  ): Pod {
    const before = checked(this.pods.get(name), metadata);
    const isResize = resource === "pods/resize";
    const { labels = {} } = metadata;
    const merged: SimulatedPod = parsed(
      patched(before, isResize ? { spec } : { metadata: { labels } }, true),
    );
    const generation = (before.metadata.generation ?? 0) + (isSame(before.spec, merged.spec) ? 0 : 1);
    const writer = isResize ? { ...US, subresource: "resize" } : US;
    const managedFields = managedFieldsAfter(before, merged, writer, timeAt(this.clock.now())) ?? [];
    const after = { ...merged, metadata: { ...merged.metadata, generation, managedFields } };
    return isDryRun ? after : this.putPod(after);
  }

  #callScaling(method: string, written: KubeObject & PipeScaling): ScalingObject {
    if (method === "POST") {
      const version = this.#next();
      const metadata = {
        ...written.metadata,
        uid: `uid-${version}`,
        resourceVersion: version,
        generation: 1,
      };
      return this.#putScaling({
        ...written,
        metadata: { ...metadata, creationTimestamp: timeAt(this.clock.now()) },
      });
    }
    const before = checked(this.scaling, written.metadata);
    return this.#putScaling({ ...before, status: parsed(patched(before.status, written.status, false)) });
  }

  #objects(plural: string): readonly KubeObject[] {
    switch (plural) {
      case "statefulsets":
        return this.set ? [this.set] : [];
      case "pods":
        return [...this.pods.values()];
      case "pipescalings":
        return this.scaling ? [this.scaling] : [];
      case "nodes":
        return [aNode("node", { cpu: "256", memory: "1Ti" })];
      default:
        return [];
    }
  }
}

/** Names the step of a commit that a write is. */
export function stepOf(request: KubeRequest): string {
  const { resource, name = "" } = targetOf(request);
  const body = JSON.stringify(request.body ?? {});
  if (resource === "pods") return request.method === "DELETE" ? `delete ${name}` : `label ${name}`;
  if (resource === "pods/resize") return `resize ${name}`;
  if (resource !== "statefulsets") return resource;
  const isSized = body.includes('"template":{"spec"');
  if (/"partition":\d{10}/.test(body)) return "hold";
  if (body.includes('"partition":')) return isSized ? "take back" : "release";
  if (body.includes('"managedFields"')) return "records";
  return isSized ? "size" : "annotation";
}

function imageOf({ containers: [container] }: Pick<PodTemplate["spec"], "containers">): unknown {
  return container && "image" in container ? container.image : undefined;
}

function isPipe({ metadata: { labels = {} } }: StatefulSet): boolean {
  return labels[SERVICE_LABEL] !== undefined && labels["pipes.clouddb.dev/type"] === "database";
}
