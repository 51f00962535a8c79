import { REVISION_ANNOTATION } from "../../../src/controller/names.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import { KubeApiError } from "../../../src/kube/errors.ts";
import type { Deployment, KubeObject, Pod, ReplicaSet } from "../../../src/kube/objects.ts";
import { PODS, REPLICA_SETS } from "../../../src/kube/paths.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { patched } from "./patch.ts";
import { isActive, isRunning, runningWith } from "./pod-status.ts";
import { SimulatedWatches } from "./watches.ts";

/** The response of a kubelet to a resize: it makes it, reports a reason, or does not notice it. */
export type ResizeOutcome = "Done" | "Deferred" | "Infeasible" | "Error" | "NotObserved";

interface WorkloadsOptions {
  readonly clock: FakeClock;
  readonly next: () => string;
  readonly deployments: ReadonlyMap<string, Deployment>;
  readonly report: (name: string, status: Partial<NonNullable<Deployment["status"]>>) => void;
  readonly setRevision: (name: string, revision: number) => void;
  /** A write of the controller. */
  readonly wrote: (line: string) => void;
}

const SYNC_MS = 20;
const START_MS = 500;
const KUBELET_MS = 30;

/**
 * Simulates the Deployment controller, ReplicaSets, and pods with their kubelets, in virtual time, as far as a resize in
 * place can observe them. New pods start immediately, in addition to the old ones.
 */
export class SimulatedWorkloads {
  readonly pods = new Map<string, Pod>();
  readonly replicaSets = new Map<string, ReplicaSet>();
  readonly watches = new SimulatedWatches();
  /** Names of Deployments whose pods were replaced, once for each new ReplicaSet. */
  readonly replaced: string[] = [];
  outcome: (pod: Pod) => ResizeOutcome = () => "Done";
  /** Delay of the Deployment controller in ms. */
  syncMs = SYNC_MS;
  /** Time in ms after which the Deployment controller observes a template that another writer set in a ReplicaSet. */
  replicaSetWatchMs = 0;
  /** The templates that it has not observed yet, and their predecessors, by name of the ReplicaSet. */
  readonly #earlierTemplates = new Map<string, ReplicaSet["spec"]["template"]>();
  /** The controller manager is dead: nothing creates, scales or replaces pods. */
  #isDown = false;
  readonly #options: WorkloadsOptions;
  #created = 0;

  constructor(options: WorkloadsOptions) {
    this.#options = options;
  }

  /** The Deployment, or one of its objects, has changed. */
  changed(name: string): void {
    this.#options.clock.after(this.syncMs, () => this.#sync(name));
  }

  killControllerManager(): void {
    this.#isDown = true;
  }

  /** A controller manager that starts looks at all Deployments. */
  startControllerManager(): void {
    this.#isDown = false;
    for (const name of this.#options.deployments.keys()) this.changed(name);
  }

  removed(uid: string): void {
    for (const set of this.replicaSetsOf(uid)) {
      this.#scale(set, 0);
      this.#remove(set.metadata.name);
    }
  }

  /** The pods of a Deployment that have not ended and are not being deleted. */
  podsOf({ metadata }: Deployment): Pod[] {
    return this.replicaSetsOf(metadata.uid).flatMap((set) => this.#podsOf(set));
  }

  /** The ReplicaSet of the revision before the current one, to which `kubectl rollout undo` returns. */
  previousOf({ metadata }: Deployment): ReplicaSet | undefined {
    const [, previous] = this.replicaSetsOf(metadata.uid).toSorted((a, b) => revisionOf(b) - revisionOf(a));
    return previous;
  }

  /** Each kubelet checks its pod again, because outcomes have changed. */
  look(): void {
    for (const { metadata } of this.pods.values()) this.#kubelet(metadata.name);
  }

  /** @param graceMs time that the pod takes to end; its ReplicaSet replaces it at once */
  deletePod(name: string, graceMs = 0): void {
    const pod = this.pods.get(name);
    if (!pod) return;
    if (graceMs > 0) {
      const deletionTimestamp = new Date(this.#options.clock.now() + graceMs).toISOString();
      this.#putPod({ ...pod, metadata: { ...pod.metadata, deletionTimestamp } });
      this.#options.clock.after(graceMs, () => this.deletePod(name));
    } else {
      this.pods.delete(name);
      this.watches.send(PODS, "DELETED", this.#stamped(pod));
    }
    this.#podsChanged(pod);
  }

  /** The kubelet evicts a pod, which stays until somebody deletes it. */
  evictPod(name: string): void {
    const pod = this.pods.get(name);
    if (!pod) return;
    this.#putPod({ ...pod, status: { phase: "Failed" } });
    this.#podsChanged(pod);
  }

  /**
   * The container of a pod crashes, and starts again with the resources in its spec.
   *
   * @param stopMs until then, the kubelet does not resize the pod
   */
  crash(name: string, stopMs = 0): void {
    const pod = this.pods.get(name);
    if (!pod || !isRunning(pod)) return;
    if (stopMs === 0) {
      this.#restart(pod);
      return;
    }
    const containerStatuses = pod.status?.containerStatuses?.map((each) => ({ ...each, state: {} }));
    this.#putPod({ ...pod, status: { ...pod.status, ...(containerStatuses ? { containerStatuses } : {}) } });
    this.#readinessChanged(pod);
    this.#options.clock.after(stopMs, () => {
      const stopped = this.pods.get(name);
      if (!stopped || !isActive(stopped)) return;
      this.#restart(stopped);
      this.#readinessChanged(stopped);
      this.#kubelet(name);
    });
  }

  #restart(pod: Pod): void {
    const restartCount = (pod.status?.containerStatuses?.[0]?.restartCount ?? 0) + 1;
    this.#putPod({ ...pod, status: { ...pod.status, ...runningWith(pod, restartCount) } });
  }

  /** The status of the ReplicaSet has the number of its ready pods. */
  #readinessChanged(pod: Pod): void {
    const set = this.#setOf(pod);
    if (set) this.#putSet(set);
    this.#podsChanged(pod);
  }

  #podsChanged(pod: Pod): void {
    const set = this.#setOf(pod);
    if (set) this.changed(set.metadata.ownerReferences?.[0]?.name ?? "");
  }

  #setOf({ metadata }: Pod): ReplicaSet | undefined {
    return [...this.replicaSets.values()].find((each) => each.metadata.uid === ownerOf(metadata));
  }

  /** A call of the controller for a pod or ReplicaSet. */
  call({ method, path, body }: KubeRequest): KubeObject {
    const name =
      path
        .replace(/\/resize$/, "")
        .split("/")
        .at(-1) ?? "";
    const written: ReplicaSet & Pod = JSON.parse(JSON.stringify(body));
    if (path.includes("/pods/")) return this.#resize(checked(this.pods.get(name), written), written);
    const set = this.replicaSets.get(name);
    if (method === "DELETE") {
      const { preconditions } = JSON.parse(JSON.stringify(body));
      checked(set, { metadata: preconditions });
      this.#options.wrote(`${name} deleted`);
      this.#remove(name);
      return { metadata: preconditions };
    }
    const before = checked(set, written);
    const after: ReplicaSet = JSON.parse(JSON.stringify(patched(before, { spec: written.spec }, true)));
    this.#options.wrote(`${name} ${sizeText(after.spec.template.spec)}`);
    const stored = this.#putSet(after);
    this.#earlierTemplates.set(name, before.spec.template);
    this.#options.clock.after(this.replicaSetWatchMs, () => {
      this.#earlierTemplates.delete(name);
      this.changed(after.metadata.ownerReferences?.[0]?.name ?? "");
    });
    return stored;
  }

  #resize(before: Pod, { spec }: Pod): Pod {
    const after: Pod = JSON.parse(JSON.stringify(patched(before, { spec }, true)));
    if (JSON.stringify(after.spec) === JSON.stringify(before.spec)) return before;
    const { name, generation = 0 } = before.metadata;
    this.#options.wrote(`${name} ${sizeText(after.spec)}`);
    this.#options.clock.after(KUBELET_MS, () => this.#kubelet(name));
    return this.#putPod({ ...after, metadata: { ...after.metadata, generation: generation + 1 } });
  }

  #kubelet(name: string): void {
    const pod = this.pods.get(name);
    if (!pod || !isRunning(pod) || !isActive(pod)) return;
    const isApplied = pod.spec.containers.every(
      ({ resources }, index) =>
        JSON.stringify(resources) === JSON.stringify(pod.status?.containerStatuses?.[index]?.resources),
    );
    const outcome = this.outcome(pod);
    if (outcome === "NotObserved") return;
    const done = outcome === "Done" || isApplied;
    const type = outcome === "Error" ? "PodResizeInProgress" : "PodResizePending";
    const conditions = done ? [] : [{ type, status: "True", reason: outcome }];
    const observedGeneration = pod.metadata.generation ?? 0;
    const status = { ...pod.status, observedGeneration, conditions };
    const after = done ? { ...pod, status: { ...status, ...runningWith(pod) } } : { ...pod, status };
    if (JSON.stringify(after) !== JSON.stringify(pod)) this.#putPod(after);
  }

  #sync(name: string): void {
    const deployment = this.#options.deployments.get(name);
    if (!deployment || this.#isDown) return;
    const { uid } = deployment.metadata;
    const { replicas = 1, paused = false } = deployment.spec;
    let current = this.#currentOf(deployment);
    if (!paused) {
      current ??= this.#create(deployment);
      this.#annotate(deployment, current);
      this.#scale(current, replicas);
      if (this.#runningOf(current) >= replicas) {
        for (const other of this.replicaSetsOf(uid))
          if (other.metadata.uid !== current.metadata.uid) this.#scale(other, 0);
      }
    } else {
      const sets = this.replicaSetsOf(uid);
      const active = sets.filter(({ spec }) => (spec.replicas ?? 1) > 0);
      const only = active.length === 0 ? (current ?? sets.at(-1)) : active[0];
      if (only && active.length <= 1) this.#scale(only, replicas);
    }
    this.#reportStatus(deployment, current);
  }

  #reportStatus(
    { metadata: { name, uid }, spec, status }: Deployment,
    current: ReplicaSet | undefined,
  ): void {
    const sets = this.replicaSetsOf(uid);
    const updatedReplicas = current ? this.#podsOf(current).length : 0;
    const counts = {
      replicas: sets.reduce((sum, set) => sum + this.#podsOf(set).length, 0),
      updatedReplicas,
      availableReplicas: sets.reduce((sum, set) => sum + this.#runningOf(set), 0),
    };
    const isUpdated = counts.replicas === updatedReplicas;
    const isComplete = isUpdated && counts.availableReplicas >= (spec.replicas ?? 1);
    const before = status?.conditions?.[0]?.reason;
    const reason = progressOf(spec.paused ?? false, isComplete || (isUpdated && before === COMPLETE));
    const lastUpdateTime = new Date(this.#options.clock.now()).toISOString();
    const condition = {
      type: "Progressing",
      status: reason === PAUSED ? "Unknown" : "True",
      reason,
      lastUpdateTime,
    };
    this.#options.report(name, { ...counts, ...(reason === before ? {} : { conditions: [condition] }) });
  }

  /** The oldest ReplicaSet with the template of the Deployment, as the Deployment controller chooses it. */
  #currentOf({ metadata, spec }: Deployment): ReplicaSet | undefined {
    const templateOf = (set: ReplicaSet) =>
      this.#earlierTemplates.get(set.metadata.name) ?? set.spec.template;
    return this.replicaSetsOf(metadata.uid).find(
      (set) => JSON.stringify(templateOf(set)) === JSON.stringify(spec.template),
    );
  }

  #create({ metadata, spec }: Deployment): ReplicaSet {
    this.#created += 1;
    this.replaced.push(metadata.name);
    const name = `${metadata.name}-${this.#created}`;
    return this.#putSet({
      metadata: {
        ...{ name, namespace: metadata.namespace ?? "", uid: `uid-${name}`, resourceVersion: "" },
        creationTimestamp: new Date(this.#options.clock.now()).toISOString(),
        ownerReferences: [{ kind: "Deployment", name: metadata.name, uid: metadata.uid }],
        annotations: { [REVISION_ANNOTATION]: "0" },
      },
      spec: { replicas: 0, template: spec.template },
    });
  }

  /** Sets the highest revision and the annotations of the Deployment, which `kubectl rollout undo` restores. */
  #annotate({ metadata: { name, uid, annotations: copied } }: Deployment, current: ReplicaSet): void {
    const others = this.replicaSetsOf(uid).filter(({ metadata }) => metadata.uid !== current.metadata.uid);
    const revision = Math.max(revisionOf(current), ...others.map((each) => revisionOf(each) + 1), 1);
    const annotations = { ...copied, [REVISION_ANNOTATION]: `${revision}` };
    if (JSON.stringify(annotations) === JSON.stringify(current.metadata.annotations)) return;
    this.#putSet({ ...current, metadata: { ...current.metadata, annotations } });
    if (revision > revisionOf(current)) this.#options.setRevision(name, revision);
  }

  #scale({ metadata: { name } }: ReplicaSet, replicas: number): void {
    const set = this.replicaSets.get(name);
    if (!set) return;
    const pods = this.#podsOf(set);
    for (const pod of pods.slice(replicas)) this.deletePod(pod.metadata.name);
    for (let count = pods.length; count < replicas; count += 1) this.#startPod(set);
    if (set.spec.replicas === replicas && set.status?.replicas === replicas) return;
    this.#putSet({ ...set, spec: { ...set.spec, replicas }, status: { replicas } });
  }

  #startPod({ metadata, spec: { template } }: ReplicaSet): void {
    this.#created += 1;
    const name = `${metadata.name}-${this.#created}`;
    const deployment = metadata.ownerReferences?.[0]?.name ?? "";
    this.#putPod({
      metadata: {
        ...{
          name,
          namespace: metadata.namespace ?? "",
          uid: `uid-${name}`,
          resourceVersion: "",
          generation: 1,
        },
        ownerReferences: [{ kind: "ReplicaSet", name: metadata.name, uid: metadata.uid }],
      },
      spec: template.spec,
    });
    this.#options.clock.after(START_MS, () => {
      const pod = this.pods.get(name);
      if (!pod || !isActive(pod)) return;
      this.#putPod({ ...pod, status: { observedGeneration: 1, ...runningWith(pod) } });
      this.changed(deployment);
      this.#kubelet(name);
    });
  }

  #putPod(pod: Pod): Pod {
    const stored = this.#stamped(pod);
    const isNew = !this.pods.has(pod.metadata.name);
    this.pods.set(pod.metadata.name, stored);
    this.watches.send(PODS, isNew ? "ADDED" : "MODIFIED", stored);
    return stored;
  }

  #putSet(set: ReplicaSet): ReplicaSet {
    const stored = this.#stamped(set);
    const isNew = !this.replicaSets.has(set.metadata.name);
    this.replicaSets.set(set.metadata.name, stored);
    this.watches.send(REPLICA_SETS, isNew ? "ADDED" : "MODIFIED", stored);
    return stored;
  }

  #remove(name: string): void {
    const set = this.replicaSets.get(name);
    if (!set) return;
    this.replicaSets.delete(name);
    this.watches.send(REPLICA_SETS, "DELETED", this.#stamped(set));
  }

  #stamped<T extends KubeObject>(object: T): T {
    return { ...object, metadata: { ...object.metadata, resourceVersion: this.#options.next() } };
  }

  /** In the order of their creation. */
  replicaSetsOf(deploymentUid: string): ReplicaSet[] {
    return [...this.replicaSets.values()].filter(({ metadata }) => ownerOf(metadata) === deploymentUid);
  }

  #podsOf({ metadata }: ReplicaSet): Pod[] {
    return [...this.pods.values()].filter((pod) => ownerOf(pod.metadata) === metadata.uid && isActive(pod));
  }

  #runningOf(set: ReplicaSet): number {
    return this.#podsOf(set).filter(isRunning).length;
  }
}

const COMPLETE = "NewReplicaSetAvailable";
const PAUSED = "DeploymentPaused";

/** Returns the reason of the condition Progressing. A complete rollout stays complete if pods are scaled or fail. */
function progressOf(isPaused: boolean, isComplete: boolean): string {
  if (isPaused) return PAUSED;
  return isComplete ? COMPLETE : "ReplicaSetUpdated";
}

function ownerOf({ ownerReferences }: KubeObject["metadata"]): string | undefined {
  return ownerReferences?.[0]?.uid;
}

function revisionOf({ metadata }: ReplicaSet): number {
  return Number(metadata.annotations?.[REVISION_ANNOTATION] ?? 0);
}

function sizeText({ containers }: Pod["spec"]): string {
  const { requests } = containers[0]?.resources ?? {};
  return `${requests?.["cpu"]}`;
}

/** The object of a write that has preconditions. */
function checked<T extends KubeObject>(
  object: T | undefined,
  { metadata: { uid, resourceVersion } }: { readonly metadata: Partial<KubeObject["metadata"]> },
): T {
  if (!object) throw new KubeApiError("PATCH", 404, JSON.stringify({ message: "not found" }));
  const isOther = uid !== undefined && object.metadata.uid !== uid;
  const isOutdated = resourceVersion !== undefined && object.metadata.resourceVersion !== resourceVersion;
  if (isOther || isOutdated) throw new KubeApiError("PATCH", 409, "{}");
  return object;
}
