import { DATABASE_TYPE, REVISION_ANNOTATION, TYPE_LABEL } from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { Deployment, StatefulSet } from "../../../src/kube/workloads.ts";
import { FakeClock } from "../fakes/fake-clock.ts";
import { AdoptionJudge } from "./adoption-judge.ts";
import { SimulationJudge } from "./judge.ts";
import { managedFieldsAfter, type Writer } from "./managed-fields.ts";
import { found, isPipe, isSame, replaceAll, type ScalingObject, timeAt } from "./objects.ts";
import { ReadyJudge } from "./ready-judge.ts";
import { RestartJudge } from "./restart-judge.ts";
import { SimulatedRollouts } from "./rollouts.ts";
import { nextVersion } from "./workload-writes.ts";
import { SimulatedWorkloads, type WorkloadsSnapshot } from "./workloads.ts";

/** Receives the changes, like a watch. */
export interface Watcher {
  pipe(object: Deployment): void;
  pipeGone(object: Deployment): void;
  statefulSet?(object: StatefulSet): void;
  statefulSetGone?(object: StatefulSet): void;
  scaling(object: ScalingObject): void;
  scalingGone(object: ScalingObject): void;
  /** A pod with the label `pipes.clouddb.dev/type=database`. */
  pod?(object: Pod): void;
  podGone?(object: Pod): void;
}

/** The objects of a cluster at a moment. */
interface Snapshot {
  readonly version: number;
  readonly deployments: ReadonlyMap<string, Deployment>;
  readonly scalings: ReadonlyMap<string, ScalingObject>;
  readonly workloads: WorkloadsSnapshot | undefined;
}

/** The objects of the simulated cluster, and the watches that show their changes. Objects are immutable. */
export class ClusterState {
  readonly clock = new FakeClock();
  readonly deployments = new Map<string, Deployment>();
  readonly scalings = new Map<string, ScalingObject>();
  /** The writes of the controller, one per line, without the time. */
  readonly writes: string[] = [];
  readonly judge: SimulationJudge;
  readonly readyJudge: ReadyJudge;
  readonly restartJudge: RestartJudge;
  readonly adoptionJudge: AdoptionJudge;
  /** Absent if pods are not simulated: then rollouts only take their time. */
  readonly workloads: SimulatedWorkloads | undefined;
  /** Called after each write to a Deployment, by anybody. */
  readonly onDeployment: ((deployment: Deployment) => void)[] = [];
  /** Called after each change of the StatefulSet. */
  readonly onStatefulSet: ((set: StatefulSet) => void)[] = [];
  /** Called after each change of a pod, before a watch shows it. */
  readonly onPod: ((pod: Pod) => void)[] = [];
  /** Delay of the watch in ms; by default it delivers a write before its response. */
  eventDelayMs = 0;
  /** The watch of pods delivers nothing, and its connection reports no error. */
  isPodWatchSilent = false;
  /** Time in ms until pods of this template are ready; `undefined` if they never are. Only without pods. */
  rolloutMs: (pipe: Deployment) => number | undefined = () => 1000;
  readonly #rollouts: SimulatedRollouts;
  #watcher: Watcher | undefined;
  #version = 100;
  /** When the last event arrives that is on its way, on the monotonic clock. */
  #arrivesAtMs = 0;

  constructor(rolloutTimeoutMs: number, { hasPods = false } = {}) {
    const { clock, deployments } = this;
    this.judge = new SimulationJudge(clock, rolloutTimeoutMs);
    this.readyJudge = new ReadyJudge(this);
    this.restartJudge = new RestartJudge(this);
    this.adoptionJudge = new AdoptionJudge(this);
    const report = (name: string, status: Partial<NonNullable<Deployment["status"]>>) =>
      this.report(name, status);
    const setRevision = (name: string, revision: number) => this.#setRevision(name, revision);
    this.#rollouts = new SimulatedRollouts({
      clock,
      deployments,
      judge: this.judge,
      report,
      setRevision,
      rolloutMs: (pipe) => this.rolloutMs(pipe),
    });
    if (!hasPods) return;
    this.workloads = new SimulatedWorkloads({
      clock,
      deployments,
      report,
      setRevision,
      next: () => this.next(),
      wrote: (line) => this.writes.push(line),
      onStatefulSet: (set, by) => {
        this.readyJudge.wrotePipe(set, by);
        for (const listener of this.onStatefulSet) listener(set);
        this.#notify((watcher) =>
          isPipe(set) ? watcher.statefulSet?.(set) : watcher.statefulSetGone?.(set),
        );
      },
      tried: (pod, spec, isAccepted) => this.restartJudge.tried(pod, spec, isAccepted),
      onChange: (pod, by, before) => {
        this.restartJudge.pod(pod);
        this.adoptionJudge.wrotePod(before, pod, this.#pipeOf(pod), by);
        this.readyJudge.wrotePod(pod, by);
        for (const listener of this.onPod) listener(pod);
        if (isOfDatabase(pod)) this.#notifyOfPod((watcher) => watcher.pod?.(pod));
        else this.#notifyOfPod((watcher) => watcher.podGone?.(pod));
      },
      onGone: (pod) => {
        if (isOfDatabase(pod)) this.#notifyOfPod((watcher) => watcher.podGone?.(pod));
      },
    });
  }

  /** The reports of the judges of statuses, restarts and adoptions. */
  get violations(): readonly string[] {
    const { readyJudge, restartJudge, adoptionJudge } = this;
    return [readyJudge, restartJudge, adoptionJudge].flatMap((judge) => judge.violations);
  }

  /** The next resource version. */
  next(): string {
    this.#version += 1;
    return `${this.#version}`;
  }

  /** Tells a watcher all objects, and from then on each change. It replaces the watcher before. */
  watch(watcher: Watcher): void {
    this.#watcher = watcher;
    for (const scaling of this.scalings.values()) watcher.scaling(scaling);
    for (const pipe of this.deployments.values()) if (isPipe(pipe)) watcher.pipe(pipe);
    const statefulSet = this.workloads?.statefulSet.object;
    if (statefulSet && isPipe(statefulSet)) watcher.statefulSet?.(statefulSet);
    for (const pod of this.workloads?.pods.values() ?? []) if (isOfDatabase(pod)) watcher.pod?.(pod);
  }

  /** The Deployment controller writes the status for the current generation. */
  report(name: string, changes: Partial<NonNullable<Deployment["status"]>>): void {
    const before = found(this.deployments, name);
    const { generation = 0 } = before.metadata;
    const status = { ...before.status, observedGeneration: generation, ...changes };
    this.put({ ...before, metadata: { ...before.metadata, resourceVersion: this.next() }, status }, "status");
  }

  snapshot(): Snapshot {
    const { deployments, scalings, workloads } = this;
    return {
      version: this.#version,
      deployments: new Map(deployments),
      scalings: new Map(scalings),
      workloads: workloads?.snapshot(),
    };
  }

  /**
   * etcd is restored: the objects of the snapshot replace all others, with their old versions, and no watch shows that.
   *
   * @param laterVersions writes by others since then, so that the version of the cluster may pass a known one again
   */
  restore({ version, deployments, scalings, workloads }: Snapshot, laterVersions = 0): void {
    this.#version = version + laterVersions;
    replaceAll(this.deployments, deployments);
    replaceAll(this.scalings, scalings);
    if (workloads) this.workloads?.restore(workloads);
    this.readyJudge.restored();
    this.workloads?.look();
    for (const name of deployments.keys()) this.workloads?.changed(name);
  }

  /** Stores a new version of a Deployment, with a new generation and new pods if its spec has changed. */
  protected write(after: Deployment, writer: Writer, applied: readonly string[] = []): Deployment {
    const { name } = after.metadata;
    const before = found(this.deployments, name);
    const isChanged = !isSame(before.spec, after.spec);
    const written = nextVersion(before, after, this.by(writer), applied);
    if (!isSame(before.spec.template, after.spec.template)) this.#rollouts.templateChanged(before);
    this.put(written, writer);
    if (this.workloads) this.workloads.changed(name);
    else if (isChanged && !written.spec.paused) this.#rollouts.roll(written, before);
    return written;
  }

  /** A write at this moment. */
  protected by(writer: Writer) {
    return { writer, at: timeAt(this.clock.now()), next: () => this.next() };
  }

  /** The Deployment before the last change of its template. */
  protected earlier({ metadata }: Deployment): Deployment | undefined {
    return this.#rollouts.earlier(metadata.uid);
  }

  protected put(pipe: Deployment, by: Writer | "status"): void {
    const before = this.deployments.get(pipe.metadata.name);
    this.deployments.set(pipe.metadata.name, pipe);
    this.judge.written(pipe);
    this.readyJudge.wrotePipe(pipe, by);
    this.adoptionJudge.wrotePipe(before, pipe, by);
    if (by !== "status" && by.manager !== CONTROLLER_FIELD_MANAGER) this.restartJudge.changedByOthers(pipe);
    if (isPipe(pipe)) this.#notify((watcher) => watcher.pipe(pipe));
    else if (before && isPipe(before)) this.#notify((watcher) => watcher.pipeGone(pipe));
    for (const listener of this.onDeployment) listener(pipe);
  }

  protected gone(pipe: Deployment): void {
    this.deployments.delete(pipe.metadata.name);
    this.judge.forget(pipe.metadata.name);
    this.workloads?.removed(pipe.metadata.uid);
    const object = { ...pipe, metadata: { ...pipe.metadata, resourceVersion: this.next() } };
    if (isPipe(pipe)) this.#notify((watcher) => watcher.pipeGone(object));
  }

  protected putScaling(
    written: ScalingObject,
    writer: Writer,
    applied: readonly string[] = [],
  ): ScalingObject {
    const scaling = this.#withManagers(written, writer, applied);
    const before = this.scalings.get(scaling.metadata.name);
    this.scalings.set(scaling.metadata.name, scaling);
    this.readyJudge.wroteScaling(scaling, writer);
    this.adoptionJudge.wroteScaling(before, scaling, writer);
    this.#notify((watcher) => watcher.scaling(scaling));
    return scaling;
  }

  protected scalingGone(scaling: ScalingObject): void {
    this.scalings.delete(scaling.metadata.name);
    const object = { ...scaling, metadata: { ...scaling.metadata, resourceVersion: this.next() } };
    this.#notify((watcher) => watcher.scalingGone(object));
  }

  #pipeOf({ metadata }: Pod): Deployment | undefined {
    const set = this.workloads?.replicaSets.get(metadata.ownerReferences?.[0]?.name ?? "");
    return this.deployments.get(set?.metadata.ownerReferences?.[0]?.name ?? "");
  }

  /** Kubernetes writes the revision without a new generation. */
  #setRevision(name: string, revision: number): void {
    const before = found(this.deployments, name);
    const { annotations = {} } = before.metadata;
    this.deployments.set(name, {
      ...before,
      metadata: { ...before.metadata, annotations: { ...annotations, [REVISION_ANNOTATION]: `${revision}` } },
    });
  }

  /** Adds the records of the writers of the spec. */
  #withManagers(scaling: ScalingObject, writer: Writer, applied: readonly string[]): ScalingObject {
    const specOf = ({ metadata, spec = {} }: ScalingObject) => ({ metadata, spec });
    const { uid, generation } = scaling.metadata;
    const known = this.scalings.get(scaling.metadata.name);
    const before = known?.metadata.uid === uid ? known : undefined;
    if (before && before.metadata.generation === generation)
      return {
        ...scaling,
        metadata: { ...scaling.metadata, managedFields: before.metadata.managedFields ?? [] },
      };
    const time = timeAt(this.clock.now());
    const managedFields =
      managedFieldsAfter(before && specOf(before), specOf(scaling), writer, time, applied) ?? [];
    return { ...scaling, metadata: { ...scaling.metadata, managedFields } };
  }

  #notifyOfPod(notify: (watcher: Watcher) => void): void {
    if (!this.isPodWatchSilent) this.#notify(notify);
  }

  /** Events arrive in the order of the changes. A watcher that was replaced gets no more of them. */
  #notify(notify: (watcher: Watcher) => void): void {
    const watcher = this.#watcher;
    if (!watcher) return;
    const nowMs = this.clock.monotonic();
    this.#arrivesAtMs = Math.max(this.#arrivesAtMs, nowMs + this.eventDelayMs);
    if (this.#arrivesAtMs <= nowMs) notify(watcher);
    else
      this.clock.after(this.#arrivesAtMs - nowMs, () => {
        if (this.#watcher === watcher) notify(watcher);
      });
  }
}

function isOfDatabase({ metadata: { labels = {} } }: Pod): boolean {
  return labels[TYPE_LABEL] === DATABASE_TYPE;
}
