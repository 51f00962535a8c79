import { LAST_ROLLOUT_ANNOTATION } from "../../../src/controller/names.ts";
import { formatLastRollout, type LastRollout } from "../../../src/controller/observe/last-rollout.ts";
import { toPodView } from "../../../src/controller/observe/pod-view.ts";
import { toStatefulPipeView } from "../../../src/controller/observe/workloads/stateful-set.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { sizeOfCores } from "../../../src/domain/size.ts";
import type { ManagedFields } from "../../../src/kube/objects.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { StatefulSet } from "../../../src/kube/workloads.ts";
import { pipeStatefulSet } from "../fixtures/pipe.ts";
import { amounts } from "../fixtures/pod.ts";
import { timeAt } from "./objects.ts";
import { readiness } from "./pod-status.ts";

export interface SimulatedPod {
  readonly uid: string;
  readonly number: number;
  readonly revision: string;
  readonly cores: number;
  readonly image: string;
  readonly createdAtMs: number;
  readyChangedAtMs: number;
  /** At most 2: from then on, the pod crashes again and again. */
  restarts: number;
  isReady: boolean;
  isTerminating: boolean;
}

type Policy = "OrderedReady" | "Parallel";

const UID = "uid-a";

const CRASHING = 2;

const OWNED: ManagedFields = {
  manager: CONTROLLER_FIELD_MANAGER,
  operation: "Update",
  fieldsV1: {
    "f:metadata": { "f:annotations": { [`f:${LAST_ROLLOUT_ANNOTATION}`]: {} } },
    "f:spec": {
      "f:template": {
        "f:spec": {
          "f:containers": {
            'k:{"name":"pipe"}': {
              "f:resources": {
                "f:requests": { "f:cpu": {}, "f:memory": {} },
                "f:limits": { "f:memory": {} },
              },
            },
          },
        },
      },
    },
  },
};

/**
 * A StatefulSet with its controller, as in pkg/controller/statefulset/stateful_set_control.go of Kubernetes 1.36: it
 * creates pods from the first one, replaces them from the last one, and waits for each of them. With the policy
 * OrderedReady, it replaces no pod while one is not ready.
 */
export class SimulatedStatefulSet {
  pods: SimulatedPod[] = [];
  replicas = 3;
  partition = 0;
  strategy: "RollingUpdate" | "OnDelete" = "RollingUpdate";
  cores = 1;
  image = "good";
  annotation: LastRollout | undefined;
  readonly #policy: Policy;
  readonly #revisions = new Map<string, string>();
  #generation = 1;
  #changedAtMs = 0;
  #observedGeneration = 0;
  #current: string | undefined;
  #update = "";
  #reported = "";
  #reportedAtMs = 0;
  #created = 0;

  constructor(policy: Policy) {
    this.#policy = policy;
  }

  /** Call it after a change of the spec. */
  changed(nowMs: number): void {
    this.#generation += 1;
    this.#changedAtMs = nowMs;
  }

  /** One reconciliation of the controller of Kubernetes. */
  sync(nowMs: number): void {
    const template = `${this.cores} ${this.image}`;
    const known = this.#revisions.get(template) ?? `a-r${this.#revisions.size}`;
    this.#revisions.set(template, known);
    this.#update = known;
    this.#current ??= known;
    this.#observedGeneration = this.#generation;
    this.#step(nowMs);
    const updated = this.#active.filter(({ revision }) => revision === this.#update).length;
    const isComplete = updated === this.replicas && this.#ready === this.replicas;
    if (this.strategy === "RollingUpdate" && isComplete) this.#current = this.#update;
    const reported = JSON.stringify(this.#status);
    if (reported !== this.#reported) this.#reportedAtMs = nowMs;
    this.#reported = reported;
  }

  /** One pass of the kubelets. @param isHealthy whether a pod becomes ready */
  runPods(isHealthy: (pod: SimulatedPod) => boolean, nowMs: number): void {
    this.pods = this.pods.filter(({ isTerminating }) => !isTerminating);
    for (const pod of this.pods) {
      setReady(pod, isHealthy(pod), nowMs);
      if (!pod.isReady) pod.restarts = Math.min(CRASHING, pod.restarts + 1);
    }
  }

  /** A pod is not ready until the next pass of the kubelets. */
  crash(at: number, nowMs: number): void {
    for (const pod of this.pods.slice(at, at + 1)) setReady(pod, false, nowMs);
  }

  /** Somebody deletes a pod, or it is evicted. */
  delete(at: number): void {
    for (const pod of this.pods.slice(at, at + 1)) end(pod);
  }

  view() {
    return toStatefulPipeView(this.#object);
  }

  podViews() {
    return this.pods.map((pod) => toPodView(podOf(pod)));
  }

  get #active(): readonly SimulatedPod[] {
    return this.pods.filter(({ isTerminating }) => !isTerminating);
  }

  get #ready(): number {
    return this.#active.filter(({ isReady }) => isReady).length;
  }

  #step(nowMs: number): void {
    const isOrdered = this.#policy === "OrderedReady";
    const surplus = this.#active.findLast(({ number }) => number >= this.replicas);
    if (surplus) {
      end(surplus);
      return;
    }
    for (let number = 0; number < this.replicas; number += 1) {
      const pod = this.pods.find((each) => each.number === number);
      if (!pod) this.#create(number, nowMs);
      if (isOrdered && !(pod?.isReady && !pod.isTerminating)) return;
    }
    if (this.strategy === "OnDelete") return;
    for (let number = this.replicas - 1; number >= this.partition; number -= 1) {
      const pod = this.pods.find((each) => each.number === number);
      if (pod?.isReady && !pod.isTerminating && pod.revision === this.#update) continue;
      if (pod && pod.revision !== this.#update && !pod.isTerminating) end(pod);
      return;
    }
  }

  #create(number: number, nowMs: number): void {
    const isOld = this.strategy === "RollingUpdate" && number < this.partition;
    const revision = isOld ? (this.#current ?? this.#update) : this.#update;
    const [template = ""] = [...this.#revisions].find(([, name]) => name === revision) ?? [];
    const [cores = "", image = ""] = template.split(" ");
    this.#created += 1;
    const made = { uid: `pod-${this.#created}`, number, revision, cores: Number(cores), image };
    const times = { createdAtMs: nowMs, readyChangedAtMs: nowMs, restarts: 0 };
    this.pods.push({ ...made, ...times, isReady: false, isTerminating: false });
    this.pods.sort((a, b) => a.number - b.number);
  }

  get #status(): NonNullable<StatefulSet["status"]> {
    return {
      observedGeneration: this.#observedGeneration,
      replicas: this.pods.length,
      updatedReplicas: this.#active.filter(({ revision }) => revision === this.#update).length,
      availableReplicas: this.#ready,
      currentRevision: this.#current ?? "",
      updateRevision: this.#update,
    };
  }

  get #object(): StatefulSet {
    const made = pipeStatefulSet({
      name: "a",
      namespace: "pipes",
      serviceId: "service",
      cores: this.cores,
      replicas: this.replicas,
      image: this.image,
      updateStrategy: { type: this.strategy, rollingUpdate: { partition: this.partition } },
      annotations: this.annotation
        ? { [LAST_ROLLOUT_ANNOTATION]: formatLastRollout(this.annotation, UID) }
        : {},
    });
    const reported = { manager: "kube-controller-manager", operation: "Update", subresource: "status" };
    const managedFields = [
      { ...OWNED, time: timeAt(this.#changedAtMs) },
      { ...reported, time: timeAt(this.#reportedAtMs) },
    ];
    const identity = { uid: UID, resourceVersion: "1", generation: this.#generation, managedFields };
    return { ...made, metadata: { ...made.metadata, ...identity }, status: this.#status };
  }
}

function end(pod: SimulatedPod): void {
  pod.isTerminating = true;
  pod.isReady = false;
}

function setReady(pod: SimulatedPod, isReady: boolean, nowMs: number): void {
  if (pod.isReady !== isReady) pod.readyChangedAtMs = nowMs;
  pod.isReady = isReady;
}

function podOf(pod: SimulatedPod): Pod {
  const resources = amounts(sizeOfCores(pod.cores));
  const at = timeAt(pod.createdAtMs);
  const running = {
    name: "pipe",
    state: pod.isReady ? { running: {} } : {},
    restartCount: pod.restarts,
    resources,
  };
  return {
    metadata: {
      name: `a-${pod.number}`,
      namespace: "pipes",
      uid: pod.uid,
      resourceVersion: "1",
      generation: 1,
      creationTimestamp: at,
      ...(pod.isTerminating ? { deletionTimestamp: at } : {}),
      labels: { "controller-revision-hash": pod.revision },
      ownerReferences: [{ kind: "StatefulSet", name: "a", uid: UID }],
    },
    spec: { nodeName: "node", containers: [{ name: "pipe", resources }] },
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", ...readiness(pod.isReady, timeAt(pod.readyChangedAtMs)) }],
      containerStatuses: [running],
    },
  };
}
