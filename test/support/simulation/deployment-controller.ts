import { REVISION_ANNOTATION } from "../../../src/controller/names.ts";
import type { Deployment, ReplicaSet } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { isSame } from "./objects.ts";
import type { SimulatedPods } from "./pods.ts";
import { isSameTemplate, type PodTemplate, revisionOf, type SimulatedReplicaSets } from "./replica-sets.ts";

export interface DeploymentControllerOptions {
  readonly clock: FakeClock;
  readonly deployments: ReadonlyMap<string, Deployment>;
  readonly pods: SimulatedPods;
  readonly replicaSets: SimulatedReplicaSets;
  readonly report: (name: string, status: Partial<NonNullable<Deployment["status"]>>) => void;
  readonly setRevision: (name: string, revision: number) => void;
}

/** The fields of a Deployment that only its controller reads. */
type Spec = Deployment["spec"] & { readonly minReadySeconds?: number };

const SYNC_MS = 20;

/** Simulates the Deployment controller as far as a resize can observe it. */
export class SimulatedDeploymentController {
  /** Delay in ms. */
  syncMs = SYNC_MS;
  /** The controller manager is away: nothing creates, scales or replaces pods. */
  isDown = false;
  /** Names of Deployments whose sync fails, for example because a webhook denies its writes to their ReplicaSets. */
  readonly failing = new Set<string>();
  /** Names of Deployments whose pods were replaced, once for each new ReplicaSet. */
  readonly replaced: string[] = [];
  /** The template of a ReplicaSet, by its name, before a change that this controller has not observed yet. */
  readonly #earlierTemplates = new Map<string, PodTemplate>();
  readonly #options: DeploymentControllerOptions;

  constructor(options: DeploymentControllerOptions) {
    this.#options = options;
  }

  /** The Deployment, or one of its objects, has changed. */
  changed(name: string): void {
    this.#options.clock.after(this.syncMs, () => this.#sync(name));
  }

  /** Another writer changed the template of a ReplicaSet, which the controller observes after this time. */
  wroteTemplate({ metadata: { name, ownerReferences }, spec }: ReplicaSet, afterMs: number): void {
    this.#earlierTemplates.set(name, spec.template);
    this.#options.clock.after(afterMs, () => {
      this.#earlierTemplates.delete(name);
      this.changed(ownerReferences?.[0]?.name ?? "");
    });
  }

  #sync(name: string): void {
    const deployment = this.#options.deployments.get(name);
    if (!deployment || this.isDown || this.failing.has(name)) return;
    const { replicaSets } = this.#options;
    const { replicas = 1, paused = false } = deployment.spec;
    let current = this.#currentOf(deployment);
    if (!paused && !current && this.#stopsOldPods(deployment)) {
      this.#report(deployment, current);
      return;
    }
    if (!paused) {
      current ??= this.#create(deployment);
      this.#annotate(deployment, current);
      this.#roll(deployment, current);
    } else {
      // The Deployment controller copies annotations while the Deployment is paused, too.
      if (current) this.#annotate(deployment, current);
      const sets = replicaSets.of(deployment.metadata.uid);
      const active = sets.filter(({ spec }) => (spec.replicas ?? 1) > 0);
      const only = active.length === 0 ? (current ?? sets.at(-1)) : active[0];
      if (only && active.length <= 1) replicaSets.scale(only, replicas);
    }
    this.#report(deployment, current);
  }

  /** A Recreate Deployment gets a new ReplicaSet, and with it a new revision, when its old pods have ended. */
  #stopsOldPods({ metadata: { name, uid }, spec: { replicas, strategy } }: Deployment): boolean {
    if (strategy?.type !== "Recreate") return false;
    const { pods, replicaSets } = this.#options;
    const sets = replicaSets.of(uid);
    if (replicas !== 0 && sets.some((set) => pods.activeOf(set).length > 0)) this.replaced.push(name);
    return !this.#haveEnded(sets);
  }

  #haveEnded(sets: readonly ReplicaSet[]): boolean {
    const { pods, replicaSets } = this.#options;
    for (const set of sets) replicaSets.scale(set, 0);
    const left = sets.flatMap(({ metadata }) => pods.allOf(metadata.uid));
    // Pods that were evicted do not run.
    return left.every(({ status }) => status?.phase === "Failed");
  }

  #create(deployment: Deployment): ReplicaSet {
    const { pods, replicaSets } = this.#options;
    const sets = replicaSets.of(deployment.metadata.uid);
    const hasPods = sets.length === 0 || sets.some((set) => pods.activeOf(set).length > 0);
    if (deployment.spec.replicas !== 0 && hasPods) this.replaced.push(deployment.metadata.name);
    return replicaSets.create(deployment);
  }

  /** New pods start at once, in addition to the old ones, unless the strategy says that old ones stop first. */
  #roll({ metadata: { uid }, spec }: Deployment, current: ReplicaSet): void {
    const { replicaSets } = this.#options;
    const { replicas = 1, strategy } = spec;
    const others = replicaSets.of(uid).filter(({ metadata }) => metadata.uid !== current.metadata.uid);
    const { maxSurge, maxUnavailable } = strategy?.rollingUpdate ?? {};
    if (strategy?.type === "Recreate") {
      if (this.#haveEnded(others)) replicaSets.scale(current, replicas);
    } else if (maxSurge === 0 || maxSurge === "0%") {
      this.#rollWithoutSurge(current, others, replicas, Number.parseInt(`${maxUnavailable ?? 1}`, 10));
    } else {
      replicaSets.scale(current, replicas);
      if (replicaSets.countRunning(current) >= replicas)
        for (const other of others) replicaSets.scale(other, 0);
    }
  }

  /** @param unavailable pods that may be missing */
  #rollWithoutSurge(
    current: ReplicaSet,
    others: readonly ReplicaSet[],
    replicas: number,
    unavailable: number,
  ): void {
    const { pods, replicaSets } = this.#options;
    const countOf = (sets: readonly ReplicaSet[]) =>
      sets.reduce((sum, set) => sum + pods.activeOf(set).length, 0);
    const running = [current, ...others].reduce((sum, set) => sum + replicaSets.countRunning(set), 0);
    let removable = Math.max(0, running - (replicas - unavailable));
    for (const other of others) {
      const active = pods.activeOf(other).length;
      // A pod that does not run is not missed.
      const idle = active - replicaSets.countRunning(other);
      const removed = Math.min(active, idle + removable);
      removable -= removed - Math.min(removed, idle);
      if (removed > 0) replicaSets.scale(other, active - removed);
    }
    replicaSets.scale(current, Math.max(pods.activeOf(current).length, replicas - countOf(others)));
    if (pods.activeOf(current).length > replicas) replicaSets.scale(current, replicas);
  }

  #report(deployment: Deployment, current: ReplicaSet | undefined): void {
    const { clock, pods, replicaSets, report } = this.#options;
    const { metadata, status } = deployment;
    const { paused = false, replicas = 1, minReadySeconds = 0 }: Spec = deployment.spec;
    const sets = replicaSets.of(metadata.uid);
    const sum = (count: (set: ReplicaSet) => number) => sets.reduce((total, set) => total + count(set), 0);
    const available = sets.map((set) => replicaSets.availability(set, minReadySeconds));
    const updatedReplicas = current ? pods.activeOf(current).length : 0;
    const counts = {
      replicas: sum((set) => pods.activeOf(set).length),
      updatedReplicas,
      availableReplicas: available.reduce((total, { count }) => total + count, 0),
      terminatingReplicas: sum((set) => pods.terminatingOf(set).length),
    };
    const nextMs = Math.min(...available.map((each) => each.nextMs));
    if (Number.isFinite(nextMs)) clock.after(nextMs, () => this.changed(metadata.name));
    const isUpdated = counts.replicas === updatedReplicas;
    const isComplete = isUpdated && counts.availableReplicas >= replicas;
    const conditionOf = (wanted: string) => status?.conditions?.find(({ type }) => type === wanted);
    const before = conditionOf("Progressing")?.reason;
    const reason = progressOf(paused, isComplete || (isUpdated && before === COMPLETE));
    const lastUpdateTime = new Date(clock.now()).toISOString();
    const condition = {
      type: "Progressing",
      status: reason === PAUSED ? "Unknown" : "True",
      reason,
      lastUpdateTime,
    };
    const availability = counts.availableReplicas >= replicas ? "True" : "False";
    const known = conditionOf("Available");
    const isKnown = known?.status === availability;
    const changed = { type: "Available", status: availability, lastTransitionTime: lastUpdateTime };
    const refusal = current && replicaSets.refusals.get(current.metadata.name);
    const isReported = reason === before && isKnown && refusal === conditionOf("ReplicaFailure")?.message;
    const conditions = [
      reason === before ? (conditionOf("Progressing") ?? condition) : condition,
      isKnown ? known : changed,
      ...failed(refusal, lastUpdateTime),
    ];
    report(metadata.name, { ...counts, ...(isReported ? {} : { conditions }) });
  }

  /** The oldest ReplicaSet with the template of the Deployment, as the Deployment controller chooses it. */
  #currentOf({ metadata, spec }: Deployment): ReplicaSet | undefined {
    const templateOf = (set: ReplicaSet) =>
      this.#earlierTemplates.get(set.metadata.name) ?? set.spec.template;
    return this.#options.replicaSets
      .of(metadata.uid)
      .find((set) => isSameTemplate(templateOf(set), spec.template));
  }

  /** Sets the highest revision and the annotations of the Deployment, which `kubectl rollout undo` restores. */
  #annotate({ metadata: { name, uid, annotations: copied } }: Deployment, current: ReplicaSet): void {
    const { replicaSets, setRevision } = this.#options;
    const others = replicaSets.of(uid).filter(({ metadata }) => metadata.uid !== current.metadata.uid);
    const revision = Math.max(revisionOf(current), ...others.map((each) => revisionOf(each) + 1), 1);
    const annotations = { ...copied, [REVISION_ANNOTATION]: `${revision}` };
    if (isSame(annotations, current.metadata.annotations)) return;
    replicaSets.put({ ...current, metadata: { ...current.metadata, annotations } });
    if (revision > revisionOf(current)) setRevision(name, revision);
  }
}

function failed(message: string | undefined, lastTransitionTime: string) {
  if (message === undefined) return [];
  return [{ type: "ReplicaFailure", status: "True", reason: "FailedCreate", message, lastTransitionTime }];
}

const COMPLETE = "NewReplicaSetAvailable";
const PAUSED = "DeploymentPaused";

/** Returns the reason of the condition Progressing. A complete rollout stays complete if pods are scaled or fail. */
function progressOf(isPaused: boolean, isComplete: boolean): string {
  if (isPaused) return PAUSED;
  return isComplete ? COMPLETE : "ReplicaSetUpdated";
}
