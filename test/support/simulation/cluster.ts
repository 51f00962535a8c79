import { LAST_ROLLOUT_ANNOTATION, REVISION_ANNOTATION } from "../../../src/controller/names.ts";
import { type DeploymentView, toDeploymentView } from "../../../src/controller/observe/deployment-view.ts";
import { formatAllotment } from "../../../src/controller/observe/resources.ts";
import type { PipeScaling, PipeScalingStatus } from "../../../src/crd/pipe-scaling.ts";
import type { KubeRequest, Stream } from "../../../src/kube/client.ts";
import { KubeApiError, KubeUnreachableError } from "../../../src/kube/errors.ts";
import type { Deployment, KubeObject, Node, ObjectMeta } from "../../../src/kube/objects.ts";
import { collectionPath, NODES } from "../../../src/kube/paths.ts";
import { FakeClock } from "../fakes/fake-clock.ts";
import { aNode } from "../fixtures/node.ts";
import { SimulationJudge } from "./judge.ts";
import { ownedByOwner, ownedWith, ownedWithout } from "./owners.ts";
import { patched } from "./patch.ts";
import { SimulatedWorkloads } from "./workloads.ts";

export type ScalingObject = KubeObject & PipeScaling;

/** Receives the changes, like a watch. */
export interface Watcher {
  pipe(object: Deployment): void;
  pipeGone(object: Deployment): void;
  scaling(object: ScalingObject): void;
  scalingGone(object: ScalingObject): void;
}

/** The fault of a call: an error before or after its effect. */
export type Fault = { readonly error: Error; readonly isDone?: boolean } | undefined;

const LATENCY_MS = 5;
const SEEN_MS = 20;

/**
 * Simulates an API server with Deployments and PipeScalings, and the Deployment controller, in virtual time, as far as
 * the controller can observe them. Objects are immutable.
 */
export class SimulatedCluster {
  readonly clock = new FakeClock();
  readonly deployments = new Map<string, Deployment>();
  readonly scalings = new Map<string, ScalingObject>();
  /** The writes of the controller, one per line, without the time. */
  readonly writes: string[] = [];
  /** The size in bytes of each status patch of the controller. */
  readonly statusPatchBytes: number[] = [];
  readonly judge: SimulationJudge;
  watcher: Watcher | undefined;
  /** A webhook removes the controller's annotation from what it writes. */
  isStripping = false;
  /** Delay of the watch in ms; by default it delivers a write before its response. */
  eventDelayMs = 0;
  /** The nodes: by default one that is large enough for every test. */
  nodes: readonly Node[] = [aNode("node", { cpu: "256", memory: "1Ti" })];
  /** Delay of a call in ms. */
  latencyMs: (request: KubeRequest) => number = () => LATENCY_MS;
  /** Time in ms until pods of this template are ready; `undefined` if they never are. */
  rolloutMs: (pipe: Deployment) => number | undefined = () => 1000;
  fault: (request: KubeRequest, pipe: Deployment | undefined) => Fault = () => undefined;
  /** Absent if pods are not simulated: then rollouts only take their time. */
  readonly workloads: SimulatedWorkloads | undefined;
  #version = 100;
  /** Each Deployment before the last change of its template, by uid. */
  readonly #earlier = new Map<string, Deployment>();

  constructor(rolloutTimeoutMs: number, { hasPods = false } = {}) {
    const { clock, deployments } = this;
    this.judge = new SimulationJudge(clock, rolloutTimeoutMs);
    if (!hasPods) return;
    this.workloads = new SimulatedWorkloads({
      ...{ clock, deployments, next: () => this.next() },
      report: (name, status) => this.report(name, status),
      setRevision: (name, revision) => this.#setRevision(name, revision),
      wrote: (line) => this.writes.push(line),
    });
  }

  /** The next resource version. */
  next(): string {
    this.#version += 1;
    return `${this.#version}`;
  }

  pipe(name: string): DeploymentView {
    return toDeploymentView(found(this.deployments, name));
  }

  /** The size of the pipe's container, in the format of the annotation. */
  sizeOf(name: string): string {
    const { size, otherResources } = this.pipe(name);
    const allotment = size ?? otherResources;
    return allotment ? formatAllotment(allotment) : "unclear";
  }

  /** Creates a Deployment whose pods are running. */
  deploy(
    made: Pick<Deployment, "spec"> & { readonly metadata: Pick<ObjectMeta, "name" | "annotations"> },
  ): void {
    const { replicas = 1 } = made.spec;
    const at = this.#time();
    const metadata = {
      ...made.metadata,
      uid: `uid-${this.next()}`,
      resourceVersion: this.next(),
      generation: 1,
      creationTimestamp: at,
      annotations: { ...made.metadata.annotations, [REVISION_ANNOTATION]: "1" },
    };
    const status = { observedGeneration: 1, ...running(replicas), conditions: [progressing(NEW, at, at)] };
    this.#put({ ...made, metadata, status });
    this.workloads?.changed(made.metadata.name);
  }

  remove(name: string): void {
    const gone = found(this.deployments, name);
    this.deployments.delete(name);
    this.judge.forget(name);
    this.workloads?.removed(gone.metadata.uid);
    const object = { ...gone, metadata: { ...gone.metadata, resourceVersion: this.next() } };
    this.#notify((watcher) => watcher.pipeGone(object));
  }

  /** The owner changes the Deployment, and its pods are replaced if the template changes. */
  change(name: string, patch: Partial<Record<keyof Deployment["spec"], unknown>>): void {
    const before = found(this.deployments, name);
    const size = this.sizeOf(name);
    if (patch.replicas === 0) this.judge.stopped(name);
    this.#write(parsed({ ...before, spec: patched(before.spec, patch, true) }), "template" in patch);
    if (patch.paused === null) this.#disown(name, ["paused"]);
    if (this.sizeOf(name) === size) return;
    this.#disown(name, ["size"]);
    this.judge.forget(name);
  }

  /** The owner applies a manifest with the pause (server-side apply), and so owns the field too. */
  applyPause(name: string): void {
    const before = found(this.deployments, name);
    const managedFields = ownedByOwner(before.metadata.managedFields, "paused", this.#time());
    const metadata = { ...before.metadata, managedFields };
    this.#write({ ...before, metadata, spec: { ...before.spec, paused: true } }, false);
  }

  /** The owner sets parts of the spec as a whole. */
  setSpec(name: string, parts: Partial<Deployment["spec"]>): void {
    const before = found(this.deployments, name);
    this.#write(parsed({ ...before, spec: { ...before.spec, ...parts } }), true);
  }

  /** Another writer removes the controller's annotation. */
  removeAnnotation(name: string): void {
    const before = found(this.deployments, name);
    const { [LAST_ROLLOUT_ANNOTATION]: _, ...annotations } = before.metadata.annotations ?? {};
    this.#write({ ...before, metadata: { ...before.metadata, annotations } }, false);
    this.#disown(name, ["annotation"]);
  }

  /** Another writer replaces the spec of the Deployment, and removes our annotation. */
  replace(name: string, { spec }: Pick<Deployment, "spec">): void {
    const before = found(this.deployments, name);
    const { [LAST_ROLLOUT_ANNOTATION]: _, ...annotations } = before.metadata.annotations ?? {};
    const size = this.sizeOf(name);
    this.#write(parsed({ ...before, metadata: { ...before.metadata, annotations }, spec }), true);
    this.#disown(name, this.sizeOf(name) === size ? ["annotation"] : ["annotation", "size"]);
    this.judge.forget(name);
  }

  /** Another writer restores the template and the annotations of the previous revision. */
  undo(name: string): void {
    const before = found(this.deployments, name);
    const earlier = this.workloads
      ? this.workloads.previousOf(before)
      : this.#earlier.get(before.metadata.uid);
    if (!earlier) return;
    const annotations = {
      ...earlier.metadata.annotations,
      [REVISION_ANNOTATION]: before.metadata.annotations?.[REVISION_ANNOTATION] ?? "1",
    };
    const spec = { ...before.spec, template: earlier.spec.template };
    this.#write(
      parsed({ ...before, metadata: { ...before.metadata, annotations, managedFields: [] }, spec }),
      true,
    );
    this.judge.forget(name);
  }

  /** Another writer sets or removes these fields. */
  #disown(name: string, parts: Parameters<typeof ownedWithout>[1]): void {
    const pipe = found(this.deployments, name);
    const managedFields = ownedWithout(pipe.metadata.managedFields, parts);
    this.#put({ ...pipe, metadata: { ...pipe.metadata, resourceVersion: this.next(), managedFields } });
  }

  /** The Deployment controller writes the status for the current generation. */
  report(name: string, changes: Partial<NonNullable<Deployment["status"]>>): void {
    const before = found(this.deployments, name);
    const { generation = 0 } = before.metadata;
    const metadata = { ...before.metadata, resourceVersion: this.next() };
    this.#put({
      ...before,
      metadata,
      status: { ...before.status, observedGeneration: generation, ...changes },
    });
  }

  /** A user changes the PipeScaling. */
  patchScaling(
    name: string,
    spec: PipeScaling["spec"],
    annotations: Readonly<Record<string, string>> = {},
  ): void {
    const before = found(this.scalings, name);
    const { metadata } = before;
    const generation = (metadata.generation ?? 0) + (spec ? 1 : 0);
    this.#putScaling({
      ...before,
      metadata: {
        ...metadata,
        generation,
        resourceVersion: this.next(),
        annotations: { ...metadata.annotations, ...annotations },
      },
      spec: { ...before.spec, ...spec },
    });
  }

  removeScaling(name: string): void {
    const gone = found(this.scalings, name);
    this.scalings.delete(name);
    const object = { ...gone, metadata: { ...gone.metadata, resourceVersion: this.next() } };
    this.#notify((watcher) => watcher.scalingGone(object));
  }

  /** A call of the controller. */
  async json<T>(request: KubeRequest): Promise<T> {
    await new Promise<void>((resolve) => this.clock.after(this.latencyMs(request), resolve));
    if (request.signal?.aborted) throw new KubeUnreachableError("the client has ended");
    const name = nameIn(request.path);
    if (request.path === collectionPath(NODES, undefined)) return this.#listNodes(request);
    if (request.path.endsWith("/deployments")) return this.#listPipe(request);
    if (this.workloads && /\/(pods|replicasets)\//.test(request.path)) return this.#callWorkloads(request);
    const isOfPipe = request.path.includes("/deployments/");
    const fault = this.fault(request, isOfPipe ? this.deployments.get(name) : undefined);
    if (fault && !fault.isDone) throw fault.error;
    const response = isOfPipe ? this.#patchPipe(name, request) : this.#callScaling(name, request);
    if (fault) throw fault.error;
    return parsed(response);
  }

  /** A watch of the controller. */
  stream(request: KubeRequest): Promise<Stream> {
    const { workloads } = this;
    if (!workloads) return Promise.reject(new Error("no pods are simulated"));
    const { pods, replicaSets, watches } = workloads;
    const objects = request.path.endsWith("/pods") ? pods : replicaSets;
    return Promise.resolve(watches.stream(request, objects.values(), this.next()));
  }

  #callWorkloads<T>(request: KubeRequest): T {
    const fault = this.fault(request, undefined);
    if (fault && !fault.isDone) throw fault.error;
    const response = this.workloads?.call(request);
    if (fault) throw fault.error;
    return parsed(response);
  }

  #listNodes<T>(request: KubeRequest): T {
    const fault = this.fault(request, undefined);
    if (fault) throw fault.error;
    return parsed({ metadata: { resourceVersion: this.next() }, items: this.nodes });
  }

  #listPipe<T>({ query }: KubeRequest): T {
    const name = String(query?.["fieldSelector"]).replace("metadata.name=", "");
    return parsed({ items: [this.deployments.get(name)].filter((each) => each !== undefined) });
  }

  #patchPipe(name: string, { query, body }: KubeRequest): Deployment {
    const patch: Deployment = parsed(body);
    const before = current(this.deployments.get(name), patch.metadata);
    const { annotations = {} } = patch.metadata;
    const after: Deployment = parsed(
      patched(before, { metadata: { annotations }, ...(patch.spec ? { spec: patch.spec } : {}) }, true),
    );
    if (query?.["dryRun"] !== undefined) return after;
    const isRollback = annotations[LAST_ROLLOUT_ANNOTATION]?.includes('"isRollback":true');
    if (patch.spec?.paused === null) return this.#resume(before, after);
    if (patch.spec && isRollback) this.judge.putBack(toDeploymentView(before));
    else if (patch.spec) this.judge.given(toDeploymentView(before));
    const { [LAST_ROLLOUT_ANNOTATION]: _, ...kept } = after.metadata.annotations ?? {};
    const { isStripping } = this;
    const { managedFields: owned } = before.metadata;
    const paused = patch.spec?.paused ? (["paused"] as const) : [];
    const sized = patch.spec ? (["size", ...paused] as const) : [];
    const managedFields = isStripping
      ? ownedWith(ownedWithout(owned, ["annotation"]), sized, this.#time())
      : ownedWith(owned, ["annotation", ...sized], this.#time());
    const metadata = { ...after.metadata, managedFields, ...(isStripping ? { annotations: kept } : {}) };
    const written = this.#write({ ...after, metadata }, true);
    this.writes.push(`${name} ${patch.spec ? this.sizeOf(name) : "noted"}`);
    return written;
  }

  #resume(before: Deployment, after: Deployment): Deployment {
    const { name, managedFields } = before.metadata;
    const metadata = { ...after.metadata, managedFields: ownedWithout(managedFields, ["paused"]) };
    this.writes.push(`${name} resumed`);
    return this.#write({ ...after, metadata }, false);
  }

  #callScaling(name: string, { method = "GET", body }: KubeRequest): ScalingObject {
    if (method === "GET") return found(this.scalings, name);
    const written: ScalingObject = parsed(body);
    if (method === "POST") return this.#create(written);
    this.statusPatchBytes.push(JSON.stringify(body).length);
    const before = current(this.scalings.get(name), written.metadata);
    const status: PipeScalingStatus = parsed(patched(before.status, written.status, false));
    const after = { ...before, metadata: { ...before.metadata, resourceVersion: this.next() }, status };
    this.writes.push(`${name} ${status.conditions?.[0]?.reason} ${status.pipes?.summary}`);
    return this.#putScaling(after);
  }

  #create(made: ScalingObject): ScalingObject {
    const { name } = made.metadata;
    if (this.scalings.has(name)) throw new KubeApiError("POST", 409, "{}");
    const resourceVersion = this.next();
    const stamps = {
      uid: `uid-${resourceVersion}`,
      resourceVersion,
      generation: 1,
      creationTimestamp: this.#time(),
    };
    this.writes.push(`create ${name}`);
    return this.#putScaling({
      ...made,
      metadata: { ...made.metadata, ...stamps },
      status: { observedGeneration: -1 },
    });
  }

  /** Stores a new version of a Deployment, with a new generation and new pods if its spec has changed. */
  #write(after: Deployment, isOfTemplate: boolean): Deployment {
    const { name } = after.metadata;
    const before = found(this.deployments, name);
    if (JSON.stringify(before.spec.template) !== JSON.stringify(after.spec.template))
      this.#earlier.set(before.metadata.uid, before);
    const isChanged = JSON.stringify(before.spec) !== JSON.stringify(after.spec);
    const generation = (before.metadata.generation ?? 0) + (isChanged ? 1 : 0);
    const written = { ...after, metadata: { ...after.metadata, generation, resourceVersion: this.next() } };
    this.#put(written);
    if (this.workloads) this.workloads.changed(name);
    else if (isChanged && !written.spec.paused) this.#roll(written, isOfTemplate);
    return written;
  }

  #roll(pipe: Deployment, isOfTemplate: boolean): void {
    const { name, uid, generation } = pipe.metadata;
    const { replicas = 1 } = pipe.spec;
    const isCurrent = () => {
      const now = this.deployments.get(name)?.metadata;
      return now?.uid === uid && now.generation === generation;
    };
    const after = (ms: number, work: () => void) => this.clock.after(ms, () => isCurrent() && work());
    const since = pipe.status?.conditions?.[0]?.lastTransitionTime ?? this.#time();
    after(SEEN_MS, () => {
      if (isOfTemplate) this.#raiseRevision(name);
      this.report(
        name,
        isOfTemplate
          ? {
              replicas: replicas + 1,
              updatedReplicas: 1,
              availableReplicas: replicas,
              conditions: [progressing("ReplicaSetUpdated", this.#time(), since)],
            }
          : {},
      );
    });
    const rolloutMs = isOfTemplate ? this.rolloutMs(pipe) : 500;
    if (rolloutMs === undefined) return;
    after(SEEN_MS + rolloutMs, () => {
      this.judge.completed(name);
      // Scaling to zero completes a rollout in progress.
      const isAnnounced = this.deployments.get(name)?.status?.conditions?.[0]?.reason === NEW;
      const isNew = isOfTemplate || !isAnnounced;
      const conditions = isNew ? { conditions: [progressing(NEW, this.#time(), since)] } : {};
      this.report(name, { ...running(replicas), ...conditions });
    });
  }

  #raiseRevision(name: string): void {
    const { annotations = {} } = found(this.deployments, name).metadata;
    this.#setRevision(name, Number(annotations[REVISION_ANNOTATION]) + 1);
  }

  #setRevision(name: string, revision: number): void {
    const before = found(this.deployments, name);
    const { annotations = {} } = before.metadata;
    this.deployments.set(name, {
      ...before,
      metadata: { ...before.metadata, annotations: { ...annotations, [REVISION_ANNOTATION]: `${revision}` } },
    });
  }

  #notify(notify: (watcher: Watcher) => void): void {
    const tellNow = () => {
      if (this.watcher) notify(this.watcher);
    };
    if (this.eventDelayMs === 0) tellNow();
    else this.clock.after(this.eventDelayMs, tellNow);
  }

  #put(pipe: Deployment): void {
    this.deployments.set(pipe.metadata.name, pipe);
    this.judge.written(pipe);
    this.#notify((watcher) => watcher.pipe(pipe));
  }

  #putScaling(scaling: ScalingObject): ScalingObject {
    this.scalings.set(scaling.metadata.name, scaling);
    this.#notify((watcher) => watcher.scaling(scaling));
    return scaling;
  }

  #time(): string {
    return `${new Date(this.clock.now()).toISOString().slice(0, 19)}Z`;
  }
}

const NEW = "NewReplicaSetAvailable";

function progressing(reason: string, lastUpdateTime: string, lastTransitionTime: string) {
  return { type: "Progressing", status: "True", reason, lastUpdateTime, lastTransitionTime };
}

function running(replicas: number) {
  return { replicas, updatedReplicas: replicas, availableReplicas: replicas };
}

/** The object of a write, if its version is the one that the writer read. */
function current<T extends KubeObject>(object: T | undefined, { uid, resourceVersion }: ObjectMeta): T {
  if (!object) throw new KubeApiError("PATCH", 404, "{}");
  if (object.metadata.uid !== uid) {
    const details = { causes: [{ field: "metadata.uid" }] };
    throw new KubeApiError("PATCH", 422, JSON.stringify({ message: "replaced", details }));
  }
  if (object.metadata.resourceVersion !== resourceVersion) throw new KubeApiError("PATCH", 409, "{}");
  return object;
}

function nameIn(path: string): string {
  return decodeURIComponent(
    path
      .replace(/\/status$/, "")
      .split("/")
      .at(-1) ?? "",
  );
}

function found<T>(objects: ReadonlyMap<string, T>, name: string): T {
  const object = objects.get(name);
  if (!object) throw new KubeApiError("GET", 404, JSON.stringify({ message: `no ${name}` }));
  return object;
}

/** A deep copy, like an object that was received. */
function parsed<T>(value: unknown): T {
  return JSON.parse(JSON.stringify(value));
}

/** The write succeeded, but its response was lost. */
export const LOST_ANSWER: Fault = { error: new KubeUnreachableError("cut short"), isDone: true };

export function refusal(message: string): Fault {
  return { error: new KubeApiError("PATCH /pipe", 422, JSON.stringify({ message })) };
}
