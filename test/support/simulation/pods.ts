import type { KubeObject } from "../../../src/kube/objects.ts";
import { PODS } from "../../../src/kube/paths.ts";
import type { Container, Pod } from "../../../src/kube/pods.ts";
import type { ReplicaSet } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { type Admission, allocatedMillicoresOf, millicoresOf, SimulatedLimits } from "./limits.ts";
import { managedFieldsAfter, type Writer } from "./managed-fields.ts";
import { ownerUidOf, timeAt } from "./objects.ts";
import { isActive, type SimulatedPod, UNSCHEDULABLE, withConditions } from "./pod-status.ts";
import type { SimulatedWatches } from "./watches.ts";

/** The writer of a change, or "status" if a kubelet or the scheduler reports the state of the pod. */
export type PodWriter = Writer | "status";

export interface PodsOptions {
  readonly clock: FakeClock;
  readonly next: () => string;
  readonly watches: SimulatedWatches;
  readonly onChange: (pod: SimulatedPod, by: PodWriter, before: SimulatedPod | undefined) => void;
  readonly onGone: (pod: SimulatedPod) => void;
  /** The pods of a ReplicaSet, or their readiness, have changed. */
  readonly onChangeOfSet: (pod: SimulatedPod) => void;
  /** A pod got a node. */
  readonly onScheduled: (pod: SimulatedPod) => void;
}

export const HASH_LABEL = "pod-template-hash";
const CONTROLLER_MANAGER: Writer = { manager: "kube-controller-manager" };
const OTHERS: Writer = { manager: "others" };
const NODE = "node";

/** The pods of a simulated cluster with one node, and its scheduler. */
export class SimulatedPods {
  readonly objects = new Map<string, SimulatedPod>();
  readonly limits = new SimulatedLimits();
  /** CPU of the node; without it, every pod has room. A pod needs its room until it has ended. */
  capacityMillicores: number | undefined;
  /** Containers that a webhook adds to each new pod. */
  injected: readonly Container[] = [];
  /** Time that a pod takes to end after a controller deleted it. */
  terminationMs: (pod: SimulatedPod) => number = () => 0;
  readonly #options: PodsOptions;
  #created = 0;

  constructor(options: PodsOptions) {
    this.#options = options;
  }

  /** @returns why the API server rejects the pod, or `undefined` */
  create(
    name: string,
    { metadata, spec: { template } }: Pick<ReplicaSet, "metadata" | "spec">,
    kind: "ReplicaSet" | "StatefulSet" = "ReplicaSet",
  ): string | undefined {
    const { clock } = this.#options;
    const containers = [...template.spec.containers, ...this.injected];
    const admission = this.admit({ ...template.spec, containers }, metadata.namespace);
    if (!("spec" in admission)) return admission.message;
    this.#created += 1;
    const made = {
      metadata: {
        name,
        namespace: metadata.namespace ?? "",
        // A StatefulSet gives the same name again.
        uid: `uid-${name}-${this.#created}`,
        resourceVersion: "",
        generation: 1,
        creationTimestamp: timeAt(clock.now()),
        labels: template.metadata?.labels ?? {},
        annotations: template.metadata?.annotations ?? {},
        ownerReferences: [{ kind, name: metadata.name, uid: metadata.uid, controller: true }],
      },
      spec: admission.spec,
      status: { phase: "Pending" },
    };
    const managedFields = managedFieldsAfter(undefined, made, CONTROLLER_MANAGER, timeAt(clock.now())) ?? [];
    this.put({ ...made, metadata: { ...made.metadata, managedFields } }, CONTROLLER_MANAGER);
    this.#schedule(name);
    return undefined;
  }

  /** A new pod, or one that is resized, as the API server stores it. */
  admit<T extends Pod["spec"]>(spec: T, namespace: string | undefined, replaced?: Pod): Admission<T> {
    const pods = () => [...this.objects.values()].filter(({ metadata }) => metadata.namespace === namespace);
    return this.limits.admit(spec, pods, replaced);
  }

  /** A pod of another owner, which takes CPU of the node. */
  place(name: string, cpu: string): void {
    const resources = { requests: { cpu, memory: "1Gi" } };
    const metadata = { name, namespace: "others", uid: `uid-${name}`, resourceVersion: "" };
    const spec = { nodeName: NODE, containers: [{ name: "other", resources }] };
    this.put({ metadata, spec, status: { phase: "Running" } }, OTHERS);
  }

  put(pod: SimulatedPod, by: PodWriter): SimulatedPod {
    const { next, watches, onChange } = this.#options;
    const stored = { ...pod, metadata: { ...pod.metadata, resourceVersion: next() } };
    const before = this.objects.get(pod.metadata.name);
    this.objects.set(pod.metadata.name, stored);
    watches.send(PODS, stored);
    onChange(stored, by, before);
    return stored;
  }

  /** @param graceMs time that the pod takes to end; its ReplicaSet replaces it at once */
  delete(name: string, graceMs: number): void {
    const { clock, next, watches, onGone, onChangeOfSet } = this.#options;
    const pod = this.objects.get(name);
    if (!pod) return;
    if (graceMs > 0) {
      const deletionTimestamp = timeAt(clock.now() + graceMs);
      this.put({ ...pod, metadata: { ...pod.metadata, deletionTimestamp } }, CONTROLLER_MANAGER);
      const { uid } = pod.metadata;
      clock.after(graceMs, () => {
        if (this.objects.get(name)?.metadata.uid === uid) this.delete(name, 0);
      });
    } else {
      this.objects.delete(name);
      const gone = { ...pod, metadata: { ...pod.metadata, resourceVersion: next() } };
      watches.send(PODS, gone, { isGone: true });
      onGone(gone);
      this.scheduleAll();
    }
    onChangeOfSet(pod);
  }

  /** The kubelet evicts a pod, which stays until somebody deletes it. */
  evict(name: string): void {
    const pod = this.objects.get(name);
    if (!pod) return;
    this.put({ ...pod, status: { phase: "Failed" } }, "status");
    this.scheduleAll();
    this.#options.onChangeOfSet(pod);
  }

  /** The pods of a ReplicaSet or StatefulSet, without those that are terminating or have failed. */
  activeOf({ metadata }: KubeObject): SimulatedPod[] {
    return this.allOf(metadata.uid).filter(isActive);
  }

  terminatingOf({ metadata }: ReplicaSet): SimulatedPod[] {
    return this.allOf(metadata.uid).filter((pod) => pod.metadata.deletionTimestamp !== undefined);
  }

  /** All pods of a ReplicaSet or StatefulSet. */
  allOf(setUid: string): SimulatedPod[] {
    return [...this.objects.values()].filter((pod) => ownerUidOf(pod.metadata) === setUid);
  }

  /** The scheduler looks for a node for each pod without one, because room has become free. */
  scheduleAll(): void {
    const waiting = [...this.objects.values()].filter(({ spec }) => spec.nodeName === undefined);
    for (const { metadata } of waiting) this.#schedule(metadata.name);
  }

  #schedule(name: string): void {
    const pod = this.objects.get(name);
    if (!pod || pod.spec.nodeName !== undefined || !isActive(pod)) return;
    if (this.#hasRoom(pod)) {
      const status = withConditions(pod.status, { PodScheduled: { status: "True" } });
      this.#options.onScheduled(
        this.put({ ...pod, spec: { ...pod.spec, nodeName: NODE }, status }, "status"),
      );
    } else if (!pod.status?.conditions?.some(({ reason }) => reason === UNSCHEDULABLE.reason)) {
      this.put({ ...pod, status: withConditions(pod.status, { PodScheduled: UNSCHEDULABLE }) }, "status");
    }
  }

  /** CPU of the node that no pod requests or was granted; infinity without a capacity. */
  get freeMillicores(): number {
    return this.#freeBeside(undefined, (pod) => Math.max(millicoresOf(pod.spec), allocatedMillicoresOf(pod)));
  }

  /** The kubelet grants a resize if what other pods have been granted leaves room for it. */
  hasRoomToResize(pod: SimulatedPod): boolean {
    return millicoresOf(pod.spec) <= this.#freeBeside(pod, allocatedMillicoresOf);
  }

  #hasRoom({ spec }: SimulatedPod): boolean {
    return millicoresOf(spec) <= this.freeMillicores;
  }

  #freeBeside(pod: SimulatedPod | undefined, used: (pod: SimulatedPod) => number): number {
    const { capacityMillicores } = this;
    if (capacityMillicores === undefined) return Number.POSITIVE_INFINITY;
    const placed = [...this.objects.values()].filter(
      ({ metadata, spec, status }) =>
        metadata.uid !== pod?.metadata.uid && spec.nodeName !== undefined && status?.phase !== "Failed",
    );
    return placed.reduce((free, each) => free - used(each), capacityMillicores);
  }
}
