import { REVISION_HASH_LABEL } from "../../../src/controller/names.ts";
import type { Pod, PodTemplate } from "../../../src/kube/pods.ts";
import type { StatefulSet } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { ownerUidOf } from "./objects.ts";
import type { SimulatedPod } from "./pod-status.ts";

interface Options {
  readonly clock: FakeClock;
  readonly set: () => StatefulSet | undefined;
  readonly pods: ReadonlyMap<string, SimulatedPod>;
  readonly putStatus: (status: NonNullable<StatefulSet["status"]>) => void;
  readonly create: (name: string, revision: string, template: PodTemplate) => void;
  /** @returns false if it ends already */
  readonly remove: (name: string) => boolean;
}

/**
 * The StatefulSet controller of Kubernetes for one StatefulSet. It sees the StatefulSet and its pods later than they change,
 * and independently of each other.
 */
export class SimulatedStatefulSets {
  isDown = false;
  setWatchMs = 20;
  podWatchMs = 20;
  /** Names of the pods that it replaced because of their template. */
  readonly replaced: string[] = [];
  readonly #options: Options;
  /** Keys are the UID and the text of the template. */
  readonly #revisions = new Map<string, { readonly name: string; readonly template: PodTemplate }>();
  #set: StatefulSet | undefined;
  #pods: readonly SimulatedPod[] = [];

  constructor(options: Options) {
    this.#options = options;
  }

  templateOf(revision: string): PodTemplate | undefined {
    return [...this.#revisions.values()].find(({ name }) => name === revision)?.template;
  }

  /** Call it after each change of the StatefulSet or a pod. */
  changed(): void {
    const { clock, set, pods } = this.#options;
    const [nextSet, nextPods] = [set(), [...pods.values()]];
    clock.after(this.setWatchMs, () => {
      this.#set = nextSet;
      this.#sync();
    });
    clock.after(this.podWatchMs, () => {
      this.#pods = nextPods;
      this.#sync();
    });
  }

  restart(): void {
    this.isDown = false;
    this.changed();
  }

  #sync(): void {
    const set = this.#set;
    const { set: current, putStatus } = this.#options;
    if (this.isDown || !set || current()?.metadata.uid !== set.metadata.uid) return;
    const update = this.#revisionOf(set);
    const known = set.status?.currentRevision;
    const own = this.#pods.filter(({ metadata }) => ownerUidOf(metadata) === set.metadata.uid);
    const active = own.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    const { replicas = 1 } = set.spec;
    const ready = active.filter(isReady).length;
    const updated = active.filter((pod) => revisionOf(pod) === update).length;
    const isComplete = updated === replicas && ready === replicas && own.length === replicas;
    const isRolling = set.spec.updateStrategy?.type !== "OnDelete";
    this.#step(set, own, update, known ?? update);
    // The API server refuses the status of an earlier version, and the next event brings another one.
    if (current()?.metadata.resourceVersion !== set.metadata.resourceVersion) return;
    putStatus({
      observedGeneration: set.metadata.generation ?? 0,
      replicas: own.length,
      updatedReplicas: updated,
      availableReplicas: ready,
      currentRevision: isRolling && isComplete ? update : (known ?? update),
      updateRevision: update,
    });
  }

  #step(set: StatefulSet, own: readonly Pod[], update: string, current: string): void {
    const { replicas = 1, updateStrategy } = set.spec;
    const isOrdered = !("podManagementPolicy" in set.spec) || set.spec.podManagementPolicy === "OrderedReady";
    const { create, remove } = this.#options;
    const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
    const isRolling = updateStrategy?.type !== "OnDelete";
    const podAt = (number: number) => own.find(({ metadata }) => metadata.name === `a-${number}`);
    for (let number = 0; number < replicas; number += 1) {
      const pod = podAt(number);
      const revision = isRolling && number < partition ? current : update;
      const template = this.templateOf(revision) ?? set.spec.template;
      if (!pod) create(`a-${number}`, revision, template);
      if (isOrdered && !(pod && isHealthy(pod))) return;
    }
    const surplus = own.filter(({ metadata }) => Number(metadata.name.slice(2)) >= replicas);
    const [last] = surplus.toSorted(
      (a, b) => Number(b.metadata.name.slice(2)) - Number(a.metadata.name.slice(2)),
    );
    if (last) {
      remove(last.metadata.name);
      if (isOrdered) return;
    }
    if (!isRolling) return;
    for (let number = replicas - 1; number >= partition; number -= 1) {
      const pod = podAt(number);
      if (pod && revisionOf(pod) !== update && pod.metadata.deletionTimestamp === undefined) {
        const isRemoved = remove(pod.metadata.name);
        if (isRemoved) this.replaced.push(pod.metadata.name);
        return;
      }
      if (!pod || !isHealthy(pod)) return;
    }
  }

  #revisionOf({ metadata, spec }: StatefulSet): string {
    const key = `${metadata.uid} ${JSON.stringify(sorted(spec.template))}`;
    const known = this.#revisions.get(key);
    if (known) return known.name;
    const name = `a-r${this.#revisions.size}`;
    this.#revisions.set(key, { name, template: spec.template });
    return name;
  }
}

/** The order of fields has no meaning. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, inner]) => [key, sorted(inner)]),
  );
}

function revisionOf({ metadata }: Pod): string | undefined {
  return metadata.labels?.[REVISION_HASH_LABEL];
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") ?? false;
}

function isHealthy(pod: Pod): boolean {
  return isReady(pod) && pod.metadata.deletionTimestamp === undefined;
}
