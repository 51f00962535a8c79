import { REVISION_HASH_LABEL } from "../../../src/controller/names.ts";
import type { Pod, PodTemplate } from "../../../src/kube/pods.ts";
import type { StatefulSet } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { ownerUidOf } from "./objects.ts";
import { isActive, type SimulatedPod } from "./pod-status.ts";
import type { SimulatedPods } from "./pods.ts";

interface Options {
  readonly clock: FakeClock;
  readonly pods: SimulatedPods;
  readonly set: () => StatefulSet | undefined;
  readonly report: (status: NonNullable<StatefulSet["status"]>) => void;
  /** A pod is replaced because of its template. */
  readonly onReplaced: (pod: string) => void;
}

/** Delay of its watches in ms. */
const WATCH_MS = 20;

/** The StatefulSet controller of Kubernetes for one StatefulSet. It sees changes later than they happen. */
export class SimulatedStatefulSetController {
  isDown = false;
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
    const [nextSet, nextPods] = [set(), [...pods.objects.values()]];
    clock.after(WATCH_MS, () => {
      if (this.isDown) return;
      this.#set = nextSet;
      this.#pods = nextPods;
      this.#sync();
    });
  }

  #sync(): void {
    const set = this.#set;
    const { set: current, report } = this.#options;
    if (!set || current()?.metadata.uid !== set.metadata.uid) return;
    const update = this.#revisionOf(set);
    const known = set.status?.currentRevision;
    const own = this.#pods.filter(({ metadata }) => ownerUidOf(metadata) === set.metadata.uid);
    const active = own.filter(isActive);
    const { replicas = 1 } = set.spec;
    const ready = active.filter(isReady).length;
    const updated = active.filter((pod) => revisionOf(pod) === update).length;
    const isComplete = updated === replicas && ready === replicas && own.length === replicas;
    const isRolling = set.spec.updateStrategy?.type !== "OnDelete";
    this.#step(set, own, update, known ?? update);
    // The API server refuses the status of an earlier version, and the next event brings another one.
    if (current()?.metadata.resourceVersion !== set.metadata.resourceVersion) return;
    report({
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
    const { onReplaced } = this.#options;
    const partition = updateStrategy?.rollingUpdate?.partition ?? 0;
    const isRolling = updateStrategy?.type !== "OnDelete";
    const podAt = (number: number) => own.find(({ metadata }) => metadata.name === `a-${number}`);
    for (let number = 0; number < replicas; number += 1) {
      const pod = podAt(number);
      const revision = isRolling && number < partition ? current : update;
      if (!pod) this.#create(set, number, revision);
      if (isOrdered && !(pod && isHealthy(pod))) return;
    }
    const surplus = own.findLast(({ metadata }) => numberOf(metadata.name) >= replicas);
    if (surplus) {
      this.#delete(surplus.metadata.name);
      return;
    }
    if (!isRolling) return;
    for (let number = replicas - 1; number >= partition; number -= 1) {
      const pod = podAt(number);
      if (pod && revisionOf(pod) !== update && isActive(pod)) {
        if (this.#delete(pod.metadata.name)) onReplaced(pod.metadata.name);
        return;
      }
      if (!pod || !isHealthy(pod)) return;
    }
  }

  #create(set: StatefulSet, number: number, revision: string): void {
    const { metadata, spec } = this.templateOf(revision) ?? set.spec.template;
    const labels = { ...metadata?.labels, [REVISION_HASH_LABEL]: revision };
    const template = { metadata: { ...metadata, labels }, spec };
    const { pods } = this.#options;
    const name = `a-${number}`;
    // The controller of StatefulSets may not see the pod yet.
    if (!pods.objects.has(name)) pods.create(name, { ...set, spec: { template } }, "StatefulSet");
  }

  /** @returns false if the pod already ends, which this controller may not have seen yet */
  #delete(name: string): boolean {
    const { pods } = this.#options;
    const pod = pods.objects.get(name);
    if (!pod || !isActive(pod)) return false;
    pods.delete(name, pods.terminationMs(pod));
    return true;
  }

  #revisionOf({ metadata, spec }: StatefulSet): string {
    // The API server stores each quantity in its shortest form.
    const text = JSON.stringify(sorted(spec.template)).replaceAll(/"(\d+)000m"/g, '"$1"');
    const key = `${metadata.uid} ${text}`;
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

function numberOf(name: string): number {
  return Number(name.slice(name.lastIndexOf("-") + 1));
}

function isReady({ status }: Pod): boolean {
  return status?.conditions?.some((each) => each.type === "Ready" && each.status === "True") ?? false;
}

function isHealthy(pod: Pod): boolean {
  return isReady(pod) && isActive(pod);
}
