import { REVISION_ANNOTATION } from "../../../src/controller/names.ts";
import type { ObjectMeta } from "../../../src/kube/objects.ts";
import { REPLICA_SETS } from "../../../src/kube/paths.ts";
import type { PodSpec } from "../../../src/kube/pods.ts";
import type { Deployment, ReplicaSet } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { ownerUidOf, timeAt } from "./objects.ts";
import { isRunning, readySinceMs } from "./pod-status.ts";
import { HASH_LABEL, type SimulatedPods } from "./pods.ts";
import type { SimulatedWatches } from "./watches.ts";

export interface PodTemplate {
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec: PodSpec;
}

export interface ReplicaSetsOptions {
  readonly clock: FakeClock;
  readonly next: () => string;
  readonly watches: SimulatedWatches;
  readonly pods: SimulatedPods;
  /** Pods that the API server rejected are created again. */
  readonly onRetry: (set: ReplicaSet["metadata"]) => void;
}

const RETRY_MS = 5000;

/** The ReplicaSets of a simulated cluster, with their controller. */
export class SimulatedReplicaSets {
  readonly objects = new Map<string, ReplicaSet>();
  /** Why the API server rejects new pods, by the name of the ReplicaSet. */
  readonly refusals = new Map<string, string>();
  readonly #retrying = new Set<string>();
  readonly #options: ReplicaSetsOptions;
  #created = 0;

  constructor(options: ReplicaSetsOptions) {
    this.#options = options;
  }

  /** The ReplicaSets of a Deployment, in the order of their creation. */
  of(deploymentUid: string): ReplicaSet[] {
    return [...this.objects.values()].filter(({ metadata }) => ownerUidOf(metadata) === deploymentUid);
  }

  ofPod({ metadata }: { readonly metadata: ObjectMeta }): ReplicaSet | undefined {
    const uid = ownerUidOf(metadata);
    return [...this.objects.values()].find((each) => each.metadata.uid === uid);
  }

  /** Creates the ReplicaSet of a Deployment, without pods. */
  create({ metadata, spec }: Deployment): ReplicaSet {
    this.#created += 1;
    const hash = `${this.#created}`;
    const name = `${metadata.name}-${hash}`;
    const { metadata: ofPods = {}, spec: podSpec }: PodTemplate = spec.template;
    const template = {
      metadata: { ...ofPods, labels: { ...ofPods.labels, [HASH_LABEL]: hash } },
      spec: podSpec,
    };
    return this.put({
      metadata: {
        name,
        namespace: metadata.namespace ?? "",
        uid: `uid-${name}`,
        resourceVersion: "",
        generation: 1,
        labels: template.metadata.labels,
        creationTimestamp: timeAt(this.#options.clock.now()),
        ownerReferences: [{ kind: "Deployment", name: metadata.name, uid: metadata.uid }],
        annotations: { [REVISION_ANNOTATION]: "0" },
      },
      spec: { replicas: 0, template },
    });
  }

  /** Starts and stops pods. Those that do not run are stopped first. */
  scale({ metadata: { name } }: ReplicaSet, replicas: number): void {
    const set = this.objects.get(name);
    if (!set) return;
    const { pods } = this.#options;
    const active = pods.activeOf(set);
    const ranked = active.toSorted((a, b) => Number(isRunning(b)) - Number(isRunning(a)));
    for (const pod of ranked.slice(replicas)) pods.delete(pod.metadata.name, pods.terminationMs(pod));
    const refusal = this.#createPods(set, replicas - active.length);
    const count = pods.activeOf(set).length;
    if (refusal === undefined) this.refusals.delete(name);
    else this.#refused(set, refusal);
    if (set.spec.replicas === replicas && set.status?.replicas === count) return;
    this.put({ ...set, spec: { ...set.spec, replicas }, status: { replicas: count } });
  }

  #createPods(set: ReplicaSet, count: number): string | undefined {
    for (let made = 0; made < count; made += 1) {
      this.#created += 1;
      const refusal = this.#options.pods.create(`${set.metadata.name}-${this.#created}`, set);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  /** The ReplicaSet controller tries again after a while. */
  #refused({ metadata }: ReplicaSet, refusal: string): void {
    const { clock, onRetry } = this.#options;
    this.refusals.set(metadata.name, refusal);
    if (this.#retrying.has(metadata.name)) return;
    this.#retrying.add(metadata.name);
    clock.after(RETRY_MS, () => {
      this.#retrying.delete(metadata.name);
      onRetry(metadata);
    });
  }

  put(set: ReplicaSet): ReplicaSet {
    const stored = this.#stamped(set);
    this.objects.set(set.metadata.name, stored);
    this.#options.watches.send(REPLICA_SETS, stored);
    return stored;
  }

  remove(name: string): void {
    const set = this.objects.get(name);
    if (!set) return;
    this.objects.delete(name);
    this.#options.watches.send(REPLICA_SETS, this.#stamped(set), { isGone: true });
  }

  countRunning(set: ReplicaSet): number {
    return this.#options.pods.activeOf(set).filter(isRunning).length;
  }

  /** Number of pods that have been ready for this time, and the time until one more of them has. */
  availability(
    set: ReplicaSet,
    minReadySeconds: number,
  ): { readonly count: number; readonly nextMs: number } {
    const nowMs = this.#options.clock.now();
    const leftMs = this.#options.pods
      .activeOf(set)
      .map((pod) => (readySinceMs(pod) ?? Number.POSITIVE_INFINITY) + minReadySeconds * 1000 - nowMs);
    const waiting = leftMs.filter((ms) => ms > 0);
    return { count: leftMs.length - waiting.length, nextMs: Math.min(...waiting) };
  }

  #stamped(set: ReplicaSet): ReplicaSet {
    return { ...set, metadata: { ...set.metadata, resourceVersion: this.#options.next() } };
  }
}

/** The template of a ReplicaSet as its Deployment has it. */
export function withoutHash({ metadata, spec }: PodTemplate): PodTemplate {
  if (!metadata) return { spec };
  const { [HASH_LABEL]: _, ...labels } = metadata.labels ?? {};
  return { metadata: { ...metadata, labels }, spec };
}

/** Compares templates as the Deployment controller does, to which `1Gi` and `1073741824` are equal. */
export function isSameTemplate(a: PodTemplate, b: PodTemplate): boolean {
  const textOf = (template: PodTemplate) =>
    JSON.stringify(withoutHash(template)).replaceAll(/"(\d+)Gi"/g, (_, gib) => `"${gib * 2 ** 30}"`);
  return textOf(a) === textOf(b);
}

export function revisionOf({ metadata }: ReplicaSet): number {
  return Number(metadata.annotations?.[REVISION_ANNOTATION] ?? 0);
}
