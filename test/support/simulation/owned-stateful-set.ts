import { LAST_ROLLOUT_ANNOTATION } from "../../../src/controller/names.ts";
import type { KubeRequest } from "../../../src/kube/client.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { StatefulSet } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { CONTROLLER, OWNER, type Writer } from "./managed-fields.ts";
import { checked, isSame, ownerUidOf, parsed, timeAt } from "./objects.ts";
import { patched } from "./patch.ts";
import type { SimulatedPods } from "./pods.ts";
import { targetOf } from "./selectors.ts";
import { SimulatedStatefulSetController } from "./stateful-set-controller.ts";
import { created, type Manifest, merged, nextVersion } from "./workload-writes.ts";

export interface OwnedStatefulSetOptions {
  readonly clock: FakeClock;
  readonly next: () => string;
  readonly pods: SimulatedPods;
  /** A write of the controller. */
  readonly wrote: (line: string) => void;
  readonly onStatefulSet: (set: StatefulSet, by: Writer | "status") => void;
}

/** The only StatefulSet of a simulated cluster, with what its owner, the controller and Kubernetes write. */
export class OwnedStatefulSet {
  /** A webhook removes our annotation from each write of the controller. */
  isStripping = false;
  /** Names of the pods that Kubernetes replaced because of their template. */
  readonly replaced: string[] = [];
  readonly #options: OwnedStatefulSetOptions;
  readonly #controller: SimulatedStatefulSetController;
  #object: StatefulSet | undefined;

  constructor(options: OwnedStatefulSetOptions) {
    const { clock, pods } = options;
    this.#options = options;
    this.#controller = new SimulatedStatefulSetController({
      clock,
      pods,
      set: () => this.#object,
      report: (status) => this.#report(status),
      onReplaced: (pod) => this.replaced.push(pod),
    });
  }

  /** Absent until its owner creates it. */
  get object(): StatefulSet | undefined {
    return this.#object;
  }

  deploy(made: Manifest): void {
    this.#put(created(made, this.#write(OWNER)), OWNER);
  }

  /** The owner patches the spec. */
  change(spec: object): void {
    const before = this.#object;
    if (!before) return;
    this.#put(nextVersion(before, parsed(patched(before, { spec }, true)), this.#write(OWNER)), OWNER);
  }

  /** The owner sets labels; `null` removes one. */
  setLabels(labels: Readonly<Record<string, string | null>>): void {
    const before = this.#object;
    if (!before) return;
    this.#put(
      nextVersion(before, parsed(patched(before, { metadata: { labels } }, true)), this.#write(OWNER)),
      OWNER,
    );
  }

  /** Another writer removes all entries of `managedFields`. */
  resetManagedFields(): void {
    const before = this.#object;
    if (!before) return;
    const { managedFields: _, ...metadata } = before.metadata;
    this.#put({ ...before, metadata: { ...metadata, resourceVersion: this.#options.next() } }, OWNER);
  }

  /** The controller manager is away. */
  down(ms: number): void {
    this.#controller.isDown = true;
    this.#options.clock.after(ms, () => {
      this.#controller.isDown = false;
      this.#controller.changed();
    });
  }

  /** A call of the controller. */
  call(request: KubeRequest): StatefulSet {
    const { method = "GET", body, query } = request;
    if (method === "GET") return checked(this.#object, {}, method);
    const patch: StatefulSet = parsed(body);
    const before = checked(this.#object, patch.metadata);
    const admitted = this.#admitted(merged(before, patch));
    const after = nextVersion(before, admitted, this.#write(CONTROLLER));
    if (query?.["dryRun"] !== undefined) return after;
    this.#options.wrote(`${targetOf(request).name} patched`);
    return this.#put(after, CONTROLLER);
  }

  #admitted(set: StatefulSet): StatefulSet {
    if (!this.isStripping) return set;
    const { [LAST_ROLLOUT_ANNOTATION]: _, ...annotations } = set.metadata.annotations ?? {};
    return { ...set, metadata: { ...set.metadata, annotations } };
  }

  /** A pod has changed, or is gone. */
  podChanged({ metadata }: Pod): void {
    if (this.#object && ownerUidOf(metadata) === this.#object.metadata.uid) this.#controller.changed();
  }

  /** The template of a revision, which is in the label of each pod. */
  templateOf(revision: string) {
    return this.#controller.templateOf(revision);
  }

  #write(writer: Writer) {
    const { clock, next } = this.#options;
    return { writer, at: timeAt(clock.now()), next };
  }

  #put(set: StatefulSet, by: Writer | "status"): StatefulSet {
    this.#object = set;
    this.#options.onStatefulSet(set, by);
    this.#controller.changed();
    return set;
  }

  #report(status: NonNullable<StatefulSet["status"]>): void {
    const set = this.#object;
    if (!set || isSame(set.status, status)) return;
    const { clock, next } = this.#options;
    const others = (set.metadata.managedFields ?? []).filter(({ subresource }) => subresource !== "status");
    const writer = { manager: "kube-controller-manager", operation: "Update", subresource: "status" };
    const managedFields = [...others, { ...writer, time: timeAt(clock.now()) }];
    const metadata = { ...set.metadata, resourceVersion: next(), managedFields };
    this.#put({ ...set, metadata, status }, "status");
  }
}
