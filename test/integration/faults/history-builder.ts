import {
  DATABASE_TYPE,
  LAST_ROLLOUT_ANNOTATION,
  SERVICE_LABEL,
  TYPE_LABEL,
} from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import type { PipeScalingStatus } from "../../../src/crd/pipe-scaling.ts";
import type { FieldsV1 } from "../../../src/kube/objects.ts";
import type { Entry, Kinds } from "./history.ts";
import { sizeOfCores } from "./pipe-view.ts";

type Deployment = Kinds["Deployment"];
type ReplicaSet = Kinds["ReplicaSet"];
type Pod = Kinds["Pod"];

export const SERVICE = "service-1";
export const NAMESPACE = "pipes";

const SIZE_FIELDS = {
  "f:spec": {
    "f:template": {
      "f:spec": {
        "f:containers": {
          'k:{"name":"pipe"}': {
            "f:resources": {
              "f:limits": { "f:memory": {} },
              "f:requests": { "f:cpu": {}, "f:memory": {} },
            },
          },
        },
      },
    },
  },
};
const ANNOTATION_FIELDS = {
  "f:metadata": { "f:annotations": { ".": {}, [`f:${LAST_ROLLOUT_ANNOTATION}`]: {} } },
};
/** The controller added the first annotation, so it still owns the annotations map without an entry. */
const ANNOTATIONS_MAP = { "f:metadata": { "f:annotations": { ".": {} } } };

const PAUSED_FIELD = { "f:spec": { "f:paused": {} } };

/** Size fields in the spec of a pod, or in the pod template of a ReplicaSet. */
const AMOUNTS = {
  "f:containers": {
    'k:{"name":"pipe"}': {
      "f:resources": { "f:limits": { "f:memory": {} }, "f:requests": { "f:cpu": {}, "f:memory": {} } },
    },
  },
};

/** Builds the history of a cluster: each call adds an event with the next resource version. */
export class HistoryBuilder {
  readonly entries: Entry[] = [];
  readonly #deployments = new Map<string, Deployment>();
  readonly #replicaSets = new Map<string, ReplicaSet>();
  readonly #pods = new Map<string, Pod>();
  #scaling: Kinds["PipeScaling"] | undefined;
  #version = 100;
  #atMs = 0;

  accept(cores: number): this {
    this.entries.push({
      type: "accepted",
      serviceId: SERVICE,
      size: sizeOfCores(cores),
      after: BigInt(this.#version),
    });
    return this;
  }

  /** Advances the time. */
  after(ms: number): this {
    this.#atMs += ms;
    return this;
  }

  leader(holderIdentity: string): this {
    const object = { metadata: this.#meta("lease"), spec: { holderIdentity } };
    this.entries.push({ type: "seen", kind: "Lease", isInitial: false, atMs: this.#atMs, object });
    return this;
  }

  /** The owner creates a Deployment, and its rollout completes. */
  pipe(name: string, cores: number, labels: Readonly<Record<string, string>> = labelsOf(SERVICE)): this {
    const metadata = { ...this.#meta(name), labels, generation: 1, managedFields: [] };
    return this.#see({ metadata, spec: specOf(cores) }).rolledOut(name);
  }

  /** The controller applies a size. */
  applySize(name: string, cores: number, more: Partial<Deployment["spec"]> = {}): this {
    const fieldsV1 = { ...SIZE_FIELDS, ...ANNOTATION_FIELDS };
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        generation: (before.metadata.generation ?? 0) + 1,
        annotations: {
          ...before.metadata.annotations,
          [LAST_ROLLOUT_ANNOTATION]: `${cores} at ${this.#version}`,
        },
        managedFields: [{ manager: CONTROLLER_FIELD_MANAGER, fieldsV1 }],
      },
      spec: { ...before.spec, ...specOf(cores), ...more },
    }));
  }

  /** Another writer applies a size, and takes over the fields. */
  overwriteSize(name: string, cores: number): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        generation: (before.metadata.generation ?? 0) + 1,
        managedFields: [
          ...(before.metadata.managedFields.length > 0
            ? [{ manager: CONTROLLER_FIELD_MANAGER, fieldsV1: ANNOTATION_FIELDS }]
            : []),
          { manager: "somebody", fieldsV1: SIZE_FIELDS },
        ],
      },
      spec: specOf(cores),
    }));
  }

  /** Another writer replaces a Deployment that the controller paused, and keeps the pause. */
  replacePaused(name: string, cores: number): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        generation: (before.metadata.generation ?? 0) + 1,
        annotations: {},
        managedFields: [
          { manager: CONTROLLER_FIELD_MANAGER, fieldsV1: PAUSED_FIELD },
          { manager: "somebody", fieldsV1: SIZE_FIELDS },
        ],
      },
      spec: { ...specOf(cores), paused: true },
    }));
  }

  /** Another writer restores an older Deployment, with its size and annotation. */
  restoreOlder(name: string, cores: number): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        generation: (before.metadata.generation ?? 0) + 1,
        annotations: {
          ...before.metadata.annotations,
          [LAST_ROLLOUT_ANNOTATION]: `older than ${this.#version}`,
        },
        managedFields: [
          { manager: CONTROLLER_FIELD_MANAGER, fieldsV1: ANNOTATIONS_MAP },
          { manager: "restorer", fieldsV1: { ...SIZE_FIELDS, ...ANNOTATION_FIELDS } },
        ],
      },
      spec: specOf(cores),
    }));
  }

  /** Replaces the fields that the controller owned in the last event, without a new version. */
  #own(name: string, spec: FieldsV1): this {
    const last = this.entries.pop();
    if (last?.type !== "seen" || last.kind !== "Deployment") throw new Error(`no write to ${name}`);
    const fieldsV1 = { ...ANNOTATION_FIELDS, "f:spec": spec };
    const managedFields = [{ manager: CONTROLLER_FIELD_MANAGER, fieldsV1 }];
    return this.#see({ ...last.object, metadata: { ...last.object.metadata, managedFields } });
  }

  /** The controller becomes the owner of a field. */
  own(name: string, fieldsV1: FieldsV1): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        managedFields: [{ manager: CONTROLLER_FIELD_MANAGER, fieldsV1 }],
      },
    }));
  }

  rolledOut(name: string, terminatingReplicas = 0): this {
    return this.#change(name, (before) => ({
      ...before,
      status: {
        ...(before.metadata.generation === undefined
          ? {}
          : { observedGeneration: before.metadata.generation }),
        replicas: 1,
        updatedReplicas: 1,
        availableReplicas: 1,
        terminatingReplicas,
      },
    }));
  }

  replicaSet(pipe: string, cores: number, replicas = 1): this {
    const { uid } = this.#deployment(pipe).metadata;
    const { template } = specOf(cores);
    const metadata = {
      ...this.#meta(`${pipe}-${cores}`),
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
      metadata: { ...before.metadata, ...this.#next(), managedFields },
      spec: { ...before.spec, template: specOf(cores).template, ...more },
    });
  }

  deleteReplicaSet(name: string): this {
    const before = found(this.#replicaSets, name);
    const object = { ...before, metadata: { ...before.metadata, ...this.#next() } };
    this.entries.push({ type: "gone", kind: "ReplicaSet", isInitial: false, atMs: this.#atMs, object });
    return this;
  }

  /** A running pod. */
  pod(name: string, replicaSet: string, cores: number): this {
    const { uid } = found(this.#replicaSets, replicaSet).metadata;
    const metadata = {
      ...this.#meta(name),
      generation: 1,
      ownerReferences: [{ kind: "ReplicaSet", name: replicaSet, uid }],
    };
    return this.#seePod({ metadata, spec: specOf(cores).template.spec, status: runningWith(cores, 1) });
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
      metadata: { ...before.metadata, ...this.#next(), generation: generation + 1, managedFields, ...more },
      spec: specOf(cores).template.spec,
    });
  }

  /** The kubelet reports that a pod has its size. */
  resized(name: string, cores: number, restartCount = 0): this {
    const before = found(this.#pods, name);
    const { generation = 0 } = before.metadata;
    return this.#seePod({
      ...before,
      metadata: { ...before.metadata, ...this.#next() },
      status: runningWith(cores, generation, restartCount),
    });
  }

  /** The controller pauses a Deployment and applies a size. */
  pause(name: string, cores: number): this {
    this.applySize(name, cores, { paused: true });
    return this.#own(name, { ...SIZE_FIELDS["f:spec"], ...PAUSED_FIELD["f:spec"] });
  }

  pauseByAnotherWriter(name: string): this {
    return this.#change(name, (before) => ({
      ...before,
      metadata: {
        ...before.metadata,
        managedFields: [{ manager: "somebody", fieldsV1: PAUSED_FIELD }],
      },
      spec: { ...before.spec, paused: true },
    }));
  }

  /** The controller resumes a Deployment. */
  resume(name: string): this {
    return this.#change(name, ({ spec: { paused: _, ...spec }, ...before }) => ({ ...before, spec }));
  }

  /** A user applies a PipeScaling. */
  requestSize(cores: number): this {
    const generation = (this.#scaling?.metadata.generation ?? 0) + 1;
    const metadata = { ...this.#meta(SERVICE), generation };
    const spec = { replicaCpuMillicores: cores * 1000, replicaMemoryGb: cores * 4 };
    return this.#seeScaling({ ...this.#scaling, metadata, spec });
  }

  /** The controller updates the status of the PipeScaling. */
  report(ready: "True" | "False", cores: number, more: Partial<PipeScalingStatus> = {}): this {
    const before = this.#scaling;
    if (!before) throw new Error("request a size first");
    const observedGeneration = more.observedGeneration ?? before.metadata.generation ?? 0;
    const about = { observedGeneration, lastTransitionTime: "", reason: "", message: `${this.#version}` };
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
    return this.#seeScaling({ ...before, metadata: { ...before.metadata, ...this.#next() }, status });
  }

  deleteScaling(): this {
    if (!this.#scaling) throw new Error("request a size first");
    const object = { ...this.#scaling, metadata: { ...this.#scaling.metadata, ...this.#next() } };
    this.entries.push({ type: "gone", kind: "PipeScaling", isInitial: false, atMs: this.#atMs, object });
    this.#scaling = undefined;
    return this;
  }

  /** The controller creates the PipeScaling. @param cores `undefined` for the tier's default */
  create(cores: number | undefined, suspend = false): this {
    const meta = this.#meta(SERVICE);
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

  gap(kind: keyof Kinds, happened: (history: this) => void): this {
    const after = BigInt(this.#version);
    happened(this);
    this.entries.push({ type: "gap", kind, after, until: BigInt(this.#version) });
    return this;
  }

  #change(name: string, change: (before: Deployment) => Deployment): this {
    const after = change(this.#deployment(name));
    return this.#see({ ...after, metadata: { ...after.metadata, ...this.#next() } });
  }

  #see(object: Deployment): this {
    this.#deployments.set(object.metadata.name, object);
    this.entries.push({ type: "seen", kind: "Deployment", isInitial: false, atMs: this.#atMs, object });
    return this;
  }

  #seeScaling(object: Kinds["PipeScaling"]): this {
    this.#scaling = object;
    this.entries.push({ type: "seen", kind: "PipeScaling", isInitial: false, atMs: this.#atMs, object });
    return this;
  }

  #seeReplicaSet(object: ReplicaSet): this {
    this.#replicaSets.set(object.metadata.name, object);
    this.entries.push({ type: "seen", kind: "ReplicaSet", isInitial: false, atMs: this.#atMs, object });
    return this;
  }

  #seePod(object: Pod): this {
    this.#pods.set(object.metadata.name, object);
    this.entries.push({ type: "seen", kind: "Pod", isInitial: false, atMs: this.#atMs, object });
    return this;
  }

  #deployment(name: string): Deployment {
    return found(this.#deployments, name);
  }

  #meta(name: string) {
    return { name, namespace: NAMESPACE, uid: `uid of ${name}`, ...this.#next() };
  }

  #next() {
    this.#version += 1;
    return { resourceVersion: `${this.#version}` };
  }
}

export function labelsOf(serviceId: string, type = DATABASE_TYPE): Record<string, string> {
  return { [SERVICE_LABEL]: serviceId, [TYPE_LABEL]: type };
}

function specOf(cores: number): Deployment["spec"] {
  const amounts = { cpu: `${cores}`, memory: `${cores * 4}Gi` };
  const resources = { requests: amounts, limits: { memory: amounts.memory } };
  return { replicas: 1, template: { spec: { containers: [{ name: "pipe", resources }] } } };
}

function runningWith(
  cores: number,
  observedGeneration: number,
  restartCount = 0,
): NonNullable<Pod["status"]> {
  const { resources } = specOf(cores).template.spec.containers[0] ?? {};
  const containerID = `runtime://${restartCount}`;
  const state = { running: {} };
  const own = { name: "pipe", state, restartCount, containerID, resources };
  return {
    observedGeneration,
    containerStatuses: [{ ...own, allocatedResources: resources?.requests ?? {} }],
  };
}

function found<T>(objects: ReadonlyMap<string, T>, name: string): T {
  const object = objects.get(name);
  if (!object) throw new Error(`no ${name}`);
  return object;
}
