import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { PipeScalingSpec, PipeScalingStatus } from "../../../src/crd/pipe-scaling.ts";
import { DeploymentHistory } from "./deployment-history.ts";
import type { Kinds } from "./history.ts";
import { AMOUNTS, found, labelsOf, runningWith, SERVICE, specOf } from "./history-objects.ts";

type ReplicaSet = Kinds["ReplicaSet"];
type Pod = Kinds["Pod"];

/** Builds the history of a cluster: each call adds an event with the next resource version. */
export class HistoryBuilder extends DeploymentHistory {
  readonly #replicaSets = new Map<string, ReplicaSet>();
  readonly #pods = new Map<string, Pod>();
  #scaling: Kinds["PipeScaling"] | undefined;

  replicaSet(pipe: string, cores: number, replicas = 1): this {
    const { uid } = this.deployment(pipe).metadata;
    const { template } = specOf(cores);
    const metadata = {
      ...this.meta(`${pipe}-${cores}`),
      ownerReferences: [{ kind: "Deployment", name: pipe, uid }],
    };
    return this.#seeReplicaSet({ metadata, spec: { replicas, template } });
  }

  /** The controller applies a size to the template of a ReplicaSet. */
  resizeReplicaSet(name: string, cores: number, more: Partial<ReplicaSet["spec"]> = {}): this {
    const before = found(this.#replicaSets, name);
    const managedFields = [
      {
        manager: CONTROLLER_FIELD_MANAGER,
        fieldsV1: { "f:spec": { "f:template": { "f:spec": AMOUNTS } } },
      },
    ];
    return this.#seeReplicaSet({
      ...before,
      metadata: { ...before.metadata, ...this.next(), managedFields },
      spec: { ...before.spec, template: specOf(cores).template, ...more },
    });
  }

  deleteReplicaSet(name: string): this {
    const before = found(this.#replicaSets, name);
    const object = { ...before, metadata: { ...before.metadata, ...this.next() } };
    return this.add("gone", "ReplicaSet", object);
  }

  /** A running pod. */
  pod(name: string, replicaSet: string, cores: number, more: Pod["status"] = {}): this {
    const status = { ...runningWith(cores, 1), ...more };
    return this.#seePod({ ...this.#newPod(name, replicaSet, cores), status });
  }

  #newPod(name: string, replicaSet: string, cores: number): Pod {
    const { uid } = found(this.#replicaSets, replicaSet).metadata;
    const metadata = {
      ...this.meta(name),
      generation: 1,
      labels: labelsOf(SERVICE),
      ownerReferences: [{ kind: "ReplicaSet", name: replicaSet, uid }],
    };
    return { metadata, spec: specOf(cores).template.spec };
  }

  /** The controller resizes a pod. */
  resize(name: string, cores: number, more: Partial<Pod["metadata"]> = {}): this {
    const before = found(this.#pods, name);
    const { generation = 0 } = before.metadata;
    const managedFields = [
      { manager: CONTROLLER_FIELD_MANAGER, subresource: "resize", fieldsV1: { "f:spec": AMOUNTS } },
    ];
    return this.#seePod({
      ...before,
      metadata: { ...before.metadata, ...this.next(), generation: generation + 1, managedFields, ...more },
      spec: specOf(cores).template.spec,
    });
  }

  /** Somebody replaces the labels of a pod. */
  relabelPod(name: string, labels: Readonly<Record<string, string>>): this {
    const before = found(this.#pods, name);
    return this.#seePod({ ...before, metadata: { ...before.metadata, ...this.next(), labels } });
  }

  /** Another writer resizes a pod. */
  resizeByAnotherWriter(name: string, cores: number): this {
    const managedFields = [{ manager: "somebody", subresource: "resize", fieldsV1: { "f:spec": AMOUNTS } }];
    return this.resize(name, cores, { managedFields });
  }

  /** A new pod of a ReplicaSet, which no node has room for. */
  unschedulable(name: string, replicaSet: string, cores: number): this {
    const conditions = [{ type: "PodScheduled", status: "False", reason: "Unschedulable" }];
    return this.#seePod({ ...this.#newPod(name, replicaSet, cores), status: { conditions } });
  }

  /** A pod gets a node. */
  schedule(name: string): this {
    const before = found(this.#pods, name);
    const metadata = { ...before.metadata, ...this.next() };
    return this.#seePod({ ...before, metadata, spec: { ...before.spec, nodeName: "node" } });
  }

  /** A pod begins to end. */
  endPod(name: string): this {
    const before = found(this.#pods, name);
    const metadata = { ...before.metadata, ...this.next(), deletionTimestamp: "2026-01-01T00:00:00Z" };
    return this.#seePod({ ...before, metadata });
  }

  /** The kubelet reports that a pod has its size. */
  resized(name: string, cores: number, restartCount = 0): this {
    const before = found(this.#pods, name);
    const { generation = 0 } = before.metadata;
    return this.#seePod({
      ...before,
      metadata: { ...before.metadata, ...this.next() },
      status: runningWith(cores, generation, restartCount),
    });
  }

  /** A user applies a PipeScaling. */
  requestSize(cores: number, more: Partial<PipeScalingSpec> = {}): this {
    const generation = (this.#scaling?.metadata.generation ?? 0) + 1;
    const metadata = { ...this.meta(SERVICE), generation };
    const spec = { replicaCpuMillicores: cores * 1000, replicaMemoryGb: cores * 4, ...more };
    return this.#seeScaling({ ...this.#scaling, metadata, spec });
  }

  /** A user suspends the service. */
  suspend(): this {
    if (!this.#scaling) throw new Error("request a size first");
    const { metadata, spec } = this.#scaling;
    const { generation = 0, managedFields = [] } = metadata;
    const written = { manager: "kubectl-patch", fieldsV1: { "f:spec": { "f:suspend": {} } } };
    const stamps = { ...this.next(), generation: generation + 1, managedFields: [...managedFields, written] };
    return this.#seeScaling({ metadata: { ...metadata, ...stamps }, spec: { ...spec, suspend: true } });
  }

  /** The controller updates the status of the PipeScaling. */
  report(ready: "True" | "False" | "Unknown", cores: number, more: Partial<PipeScalingStatus> = {}): this {
    const before = this.#scaling;
    if (!before) throw new Error("request a size first");
    const observedGeneration = more.observedGeneration ?? before.metadata.generation ?? 0;
    const about = { observedGeneration, lastTransitionTime: "", reason: "", message: `${this.version}` };
    const desired = {
      replicaCpuMillicores: cores * 1000,
      replicaMemoryGb: cores * 4,
      summary: "",
      source: "Spec",
    } as const;
    const status = {
      observedGeneration,
      desired,
      conditions: [{ type: "Ready", status: ready, ...about }],
      ...more,
    };
    return this.#seeScaling({ ...before, metadata: { ...before.metadata, ...this.next() }, status });
  }

  /** Another writer empties the status; the schema sets its default. */
  emptyStatus(): this {
    if (!this.#scaling) throw new Error("request a size first");
    const metadata = { ...this.#scaling.metadata, ...this.next() };
    return this.#seeScaling({ ...this.#scaling, metadata, status: { observedGeneration: -1 } });
  }

  deleteScaling(): this {
    if (!this.#scaling) throw new Error("request a size first");
    const object = { ...this.#scaling, metadata: { ...this.#scaling.metadata, ...this.next() } };
    this.#scaling = undefined;
    return this.add("gone", "PipeScaling", object);
  }

  /** The controller creates the PipeScaling. @param cores `undefined` for the tier's default */
  create(cores: number | undefined, suspend = false): this {
    const meta = this.meta(SERVICE);
    const metadata = {
      ...meta,
      uid: `uid of ${meta.resourceVersion}`,
      generation: 1,
      managedFields: [{ manager: CONTROLLER_FIELD_MANAGER }],
    };
    const size =
      cores === undefined ? {} : { replicaCpuMillicores: cores * 1000, replicaMemoryGb: cores * 4 };
    return this.#seeScaling({ metadata, spec: suspend ? { ...size, suspend } : size });
  }

  #seeScaling(object: Kinds["PipeScaling"]): this {
    this.#scaling = object;
    return this.add("seen", "PipeScaling", object);
  }

  #seeReplicaSet(object: ReplicaSet): this {
    this.#replicaSets.set(object.metadata.name, object);
    return this.add("seen", "ReplicaSet", object);
  }

  #seePod(object: Pod): this {
    this.#pods.set(object.metadata.name, object);
    return this.add("seen", "Pod", object);
  }
}
