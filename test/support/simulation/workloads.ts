import type { KubeRequest } from "../../../src/kube/client.ts";
import type { KubeObject } from "../../../src/kube/objects.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { Deployment, ReplicaSet, Workload } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { type DeploymentControllerOptions, SimulatedDeploymentController } from "./deployment-controller.ts";
import { type ResizeOutcome, SimulatedKubelets } from "./kubelets.ts";
import type { Writer } from "./managed-fields.ts";
import { checked, parsed, replaceAll } from "./objects.ts";
import { OwnedStatefulSet, type OwnedStatefulSetOptions } from "./owned-stateful-set.ts";
import { patched } from "./patch.ts";
import { type PodCallsOptions, SimulatedPodCalls } from "./pod-calls.ts";
import type { SimulatedPod } from "./pod-status.ts";
import { type PodsOptions, SimulatedPods } from "./pods.ts";
import { revisionOf, SimulatedReplicaSets, withoutHash } from "./replica-sets.ts";
import { targetOf } from "./selectors.ts";
import { SimulatedWatches } from "./watches.ts";

interface WorkloadsOptions
  extends Pick<DeploymentControllerOptions, "deployments" | "report" | "setRevision">,
    Pick<PodsOptions, "onChange" | "onGone">,
    Pick<PodCallsOptions, "wrote" | "tried">,
    Pick<OwnedStatefulSetOptions, "onStatefulSet"> {
  readonly clock: FakeClock;
  readonly next: () => string;
}

const FILLER = "filler";

/** The ReplicaSets and pods at a moment. */
export interface WorkloadsSnapshot {
  readonly pods: ReadonlyMap<string, SimulatedPod>;
  readonly replicaSets: ReadonlyMap<string, ReplicaSet>;
}

/** Simulates ReplicaSets, a StatefulSet and pods, with controllers, the scheduler and the kubelets, in virtual time. */
export class SimulatedWorkloads {
  readonly watches = new SimulatedWatches();
  readonly scheduler: SimulatedPods;
  readonly kubelets: SimulatedKubelets;
  readonly statefulSet: OwnedStatefulSet;
  /** Time in ms after which the Deployment controller observes a template that another writer set in a ReplicaSet. */
  replicaSetWatchMs = 0;
  readonly #sets: SimulatedReplicaSets;
  readonly #controller: SimulatedDeploymentController;
  readonly #podCalls: SimulatedPodCalls;
  readonly #options: WorkloadsOptions;

  constructor(options: WorkloadsOptions) {
    this.#options = options;
    const { clock, next, deployments, report, setRevision, wrote, onStatefulSet } = options;
    const { watches } = this;
    const onReadiness = (pod: Pod) => this.#readinessChanged(pod);
    const pods: SimulatedPods = new SimulatedPods({
      clock,
      next,
      watches,
      onChange: (pod, by, before) => {
        options.onChange(pod, by, before);
        this.statefulSet.podChanged(pod);
      },
      onGone: (pod) => {
        options.onGone(pod);
        this.statefulSet.podChanged(pod);
      },
      onChangeOfSet: (pod) => this.#podsChanged(pod),
      onScheduled: (pod) => this.kubelets.start(pod),
    });
    this.scheduler = pods;
    this.kubelets = new SimulatedKubelets({ clock, pods, onReadiness });
    this.#podCalls = new SimulatedPodCalls({ ...options, pods, kubelets: this.kubelets });
    this.statefulSet = new OwnedStatefulSet({ clock, next, pods, wrote, onStatefulSet });
    const onRetry = ({ ownerReferences }: ReplicaSet["metadata"]) =>
      this.changed(ownerReferences?.[0]?.name ?? "");
    this.#sets = new SimulatedReplicaSets({ clock, next, watches, pods, onRetry });
    this.#controller = new SimulatedDeploymentController({
      clock,
      deployments,
      pods,
      report,
      setRevision,
      replicaSets: this.#sets,
    });
  }

  get pods(): ReadonlyMap<string, SimulatedPod> {
    return this.scheduler.objects;
  }

  get replicaSets(): ReadonlyMap<string, ReplicaSet> {
    return this.#sets.objects;
  }

  /** Names of Deployments whose pods were replaced, once for each new ReplicaSet. */
  get replaced(): string[] {
    return this.#controller.replaced;
  }

  set outcome(outcome: (pod: Pod) => ResizeOutcome) {
    this.kubelets.outcome = outcome;
  }

  /** Delay of the Deployment controller in ms. */
  set syncMs(delayMs: number) {
    this.#controller.syncMs = delayMs;
  }

  /** The Deployment, or one of its objects, has changed. */
  changed(name: string): void {
    this.#controller.changed(name);
  }

  /** The Deployment controller cannot do anything for this Deployment, so it does not report that it has seen it. */
  ignore(name: string): void {
    this.#controller.failing.add(name);
  }

  killControllerManager(): void {
    this.#controller.isDown = true;
  }

  /** A controller manager that starts looks at all Deployments. */
  startControllerManager(): void {
    this.#controller.isDown = false;
    for (const name of this.#options.deployments.keys()) this.changed(name);
  }

  removed(uid: string): void {
    for (const set of this.replicaSetsOf(uid)) {
      this.#sets.scale(set, 0);
      this.#sets.remove(set.metadata.name);
    }
  }

  /** The pods of a Deployment or StatefulSet that have not ended and are not being deleted. */
  podsOf(workload: Workload): SimulatedPod[] {
    const owners = [workload, ...this.replicaSetsOf(workload.metadata.uid)];
    return owners.flatMap((owner) => this.scheduler.activeOf(owner));
  }

  /** The ReplicaSets of a Deployment, in the order of their creation. */
  replicaSetsOf(deploymentUid: string): ReplicaSet[] {
    return this.#sets.of(deploymentUid);
  }

  /** The ReplicaSet of the revision before the current one, to which `kubectl rollout undo` returns. */
  previousOf({ metadata }: Deployment): ReplicaSet | undefined {
    const [, previous] = this.replicaSetsOf(metadata.uid).toSorted((a, b) => revisionOf(b) - revisionOf(a));
    return (
      previous && { ...previous, spec: { ...previous.spec, template: withoutHash(previous.spec.template) } }
    );
  }

  /** Each kubelet checks its pod again, because outcomes have changed. */
  look(): void {
    for (const name of [...this.pods.keys()]) this.kubelets.look(name);
  }

  /** @param graceMs time that the pod takes to end; its ReplicaSet replaces it at once */
  deletePod(name: string, graceMs = 0): void {
    this.scheduler.delete(name, graceMs);
  }

  /** Places a pod of another owner that leaves only this much CPU of the node. Does nothing if less is free. */
  fillNode(leftMillicores: number): void {
    const cpu = this.scheduler.freeMillicores - leftMillicores;
    if (Number.isFinite(cpu) && cpu > 0) this.scheduler.place(FILLER, `${cpu}m`);
  }

  emptyNode(): void {
    this.deletePod(FILLER);
    this.look();
  }

  /** The kubelet evicts a pod, which stays until somebody deletes it. */
  evictPod(name: string): void {
    this.scheduler.evict(name);
  }

  /** The container of a pod crashes, and starts again with the resources in its spec (`SimulatedKubelets.crash`). */
  crash(name: string, stopMs = 0, reason = "Error"): void {
    this.kubelets.crash(name, stopMs, reason);
  }

  snapshot(): WorkloadsSnapshot {
    return { pods: new Map(this.pods), replicaSets: new Map(this.replicaSets) };
  }

  /** etcd is restored: the objects of the snapshot replace all others, with their old versions. */
  restore({ pods, replicaSets }: WorkloadsSnapshot): void {
    replaceAll(this.scheduler.objects, pods);
    replaceAll(this.#sets.objects, replicaSets);
  }

  /** Another writer resizes the containers of a pod, or one of them, such as a right-sizer. */
  resizePod(name: string, resources: object, writer: Writer, container?: string): void {
    this.#podCalls.resize(name, resources, writer, container);
  }

  /** Somebody adds an ephemeral container to a pod. */
  debugPod(name: string): void {
    const pod = this.pods.get(name);
    if (!pod) return;
    const { generation = 0 } = pod.metadata;
    const metadata = { ...pod.metadata, generation: generation + 1 };
    this.scheduler.put({ ...pod, metadata }, { manager: "kubectl", subresource: "ephemeralcontainers" });
    this.kubelets.resized(name);
  }

  /** A call of the controller for a pod, a ReplicaSet or the StatefulSet. */
  call(request: KubeRequest): KubeObject {
    const { method = "GET", body, query } = request;
    const { name = "", plural } = targetOf(request);
    if (plural === "pods") return this.#podCalls.call(request);
    if (plural === "statefulsets") return this.statefulSet.call(request);
    if (method === "GET") return checked(this.replicaSets.get(name), {}, method);
    return method === "DELETE"
      ? this.#deleteReplicaSet(name, parsed(body))
      : this.#patchReplicaSet(name, parsed(body), query?.["dryRun"] !== undefined);
  }

  #deleteReplicaSet(
    name: string,
    { preconditions = {} }: { readonly preconditions?: Partial<KubeObject["metadata"]> },
  ): KubeObject {
    const set = checked(this.replicaSets.get(name), preconditions, "DELETE");
    this.#options.wrote(`${name} deleted`);
    this.#sets.remove(name);
    return set;
  }

  #patchReplicaSet(name: string, { metadata, spec }: ReplicaSet, isDryRun: boolean): ReplicaSet {
    const before = checked(this.replicaSets.get(name), metadata);
    const after: ReplicaSet = parsed(patched(before, { spec }, true));
    if (isDryRun) return after;
    this.#options.wrote(`${name} ${sizeText(after.spec.template.spec)}`);
    const stored = this.#sets.put(after);
    this.#controller.wroteTemplate(before, this.replicaSetWatchMs);
    return stored;
  }

  /** The status of the ReplicaSet has the number of its ready pods. */
  #readinessChanged(pod: Pod): void {
    const set = this.#sets.ofPod(pod);
    if (set) this.#sets.put(set);
    this.#podsChanged(pod);
  }

  #podsChanged(pod: Pod): void {
    const set = this.#sets.ofPod(pod);
    if (set) this.changed(set.metadata.ownerReferences?.[0]?.name ?? "");
  }
}

function sizeText({ containers }: Pod["spec"]): string {
  const { requests } = containers[0]?.resources ?? {};
  return `${requests?.["cpu"]}`;
}
