import { SERVICE_LABEL } from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { sizeIn } from "../../../src/crd/size-fields.ts";
import { sizeOfQuantities } from "../../../src/domain/quantity.ts";
import { formatSize } from "../../../src/domain/size.ts";
import type { Container, Pod } from "../../../src/kube/pods.ts";
import type { Deployment, Workload } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import type { Writer } from "./managed-fields.ts";
import { isPipe, ownerUidOf, type ScalingObject } from "./objects.ts";
import { isActive } from "./pod-status.ts";
import type { SimulatedWorkloads } from "./workloads.ts";

/** The objects that are judged. */
interface Judged {
  readonly clock: FakeClock;
  readonly deployments: ReadonlyMap<string, Deployment>;
  readonly scalings: ReadonlyMap<string, ScalingObject>;
  readonly workloads: SimulatedWorkloads | undefined;
}

/** The writer of a change, or "status" if a part of Kubernetes reports its state. */
type By = Writer | "status";

/** Time that the status may take to follow a change by another writer than the controller. */
const GRACE_MS = 1000;

/** A status that says that the service is ready although it is not. */
interface Episode {
  isReported: boolean;
}

/**
 * Checks after each change that a status tells the truth: Ready=True with the generation of the PipeScaling means that
 * every template and every active pod of the pipes of the service has the size in the status.
 */
export class ReadyJudge {
  /** One line for each time that a status was false. */
  readonly violations: string[] = [];
  readonly #cluster: Judged;
  /** The false statuses, by service. */
  readonly #episodes = new Map<string, Episode>();
  /** When another writer last changed an object of a service, on the monotonic clock. */
  readonly #changedMs = new Map<string, number>();
  /** Number of status updates of a service in flight. */
  readonly #writing = new Map<string, number>();
  /** When the last one of them was sent, on the monotonic clock. */
  readonly #sentMs = new Map<string, number>();
  /** Services whose last status update failed: the next one follows after a delay. */
  readonly #failed = new Set<string>();
  #isControllerRunning = false;
  /** Services whose status came back with an etcd restore, and has not been written since then. */
  readonly #restored = new Set<string>();

  constructor(cluster: Judged) {
    this.#cluster = cluster;
  }

  controllerStarted(): void {
    this.#isControllerRunning = true;
    this.#restored.clear();
    this.changedByOthers();
  }

  controllerStopped(): void {
    this.#isControllerRunning = false;
  }

  /** A change that affects all services, such as another tier. */
  changedByOthers(): void {
    for (const service of this.#cluster.scalings.keys()) this.#changed(service);
  }

  /** etcd was restored. The status is behind until a controller has noticed that. */
  restored(): void {
    this.#episodes.clear();
    for (const service of this.#cluster.scalings.keys()) this.#restored.add(service);
  }

  /** The controller sends a status update. */
  writes(service: string): void {
    this.#writing.set(service, (this.#writing.get(service) ?? 0) + 1);
    this.#sentMs.set(service, this.#cluster.clock.monotonic());
  }

  wrote(service: string, { isFailed }: { readonly isFailed: boolean }): void {
    this.#writing.set(service, (this.#writing.get(service) ?? 1) - 1);
    if (isFailed) this.#failed.add(service);
    else this.#failed.delete(service);
    if (!isFailed) this.#restored.delete(service);
  }

  wroteScaling({ metadata: { name } }: ScalingObject, by: Writer): void {
    // A status that takes long to arrive cannot know what changed meanwhile.
    this.#check(name, by, () => this.#problems(name), this.#sentMs.get(name));
  }

  wrotePipe(pipe: Workload, by: By): void {
    const service = serviceOf(pipe);
    this.#check(service, by, () => problemsOfTemplate(pipe, this.#sizeOf(service)));
  }

  wrotePod(pod: Pod, by: By): void {
    const pipe = this.#pipeOf(pod);
    if (!pipe) return;
    const service = serviceOf(pipe);
    this.#check(service, by, () => problemsOfPod(pod, this.#sizeOf(service)));
  }

  #changed(service: string): void {
    this.#changedMs.set(service, this.#cluster.clock.monotonic());
  }

  /** @param problems of the object that changed @param sentMs when the change was sent, if it is ours */
  #check(service: string, by: By, problems: () => readonly string[], sentMs?: number): void {
    const isOurs = by !== "status" && by.manager === CONTROLLER_FIELD_MANAGER;
    if (by !== "status" && !isOurs) this.#changed(service);
    if (this.#sizeOf(service) === undefined) {
      this.#episodes.delete(service);
      return;
    }
    if (this.#restored.has(service)) return;
    const episode = this.#episodes.get(service);
    if (episode) {
      if (this.#problems(service).length === 0) this.#episodes.delete(service);
      return;
    }
    const found = problems();
    if (found.length === 0) return;
    const begun = { isReported: false };
    this.#episodes.set(service, begun);
    const { clock } = this.#cluster;
    const changedMs = this.#changedMs.get(service) ?? Number.NEGATIVE_INFINITY;
    const sinceChangeMs = (sentMs ?? clock.monotonic()) - changedMs;
    // A status that cannot be written must not keep pipes from their size.
    const isReportable = !this.#failed.has(service);
    if (isOurs && isReportable && sinceChangeMs >= GRACE_MS) this.#report(service, begun, found);
    else clock.after(GRACE_MS, () => this.#checkLater(service, begun));
  }

  #checkLater(service: string, episode: Episode): void {
    if (this.#episodes.get(service) !== episode) return;
    const problems = this.#problems(service);
    const canFollow =
      this.#isControllerRunning && !this.#failed.has(service) && (this.#writing.get(service) ?? 0) === 0;
    if (problems.length === 0) this.#episodes.delete(service);
    else if (canFollow) this.#report(service, episode, problems);
    else this.#cluster.clock.after(GRACE_MS, () => this.#checkLater(service, episode));
  }

  #report(service: string, episode: Episode, problems: readonly string[]): void {
    if (episode.isReported) return;
    episode.isReported = true;
    const seconds = this.#cluster.clock.monotonic() / 1000;
    this.violations.push(
      `${seconds} s: service ${service.slice(-2)} is Ready, but ${problems.join(" and ")}`,
    );
  }

  #problems(service: string): string[] {
    const size = this.#sizeOf(service);
    if (size === undefined) return [];
    const { deployments, workloads } = this.#cluster;
    const pipes: readonly (Workload | undefined)[] = [...deployments.values(), workloads?.statefulSet.object];
    return pipes.flatMap((pipe) => {
      if (!pipe || serviceOf(pipe) !== service) return [];
      const pods = workloads?.podsOf(pipe) ?? [];
      return [...problemsOfTemplate(pipe, size), ...pods.flatMap((pod) => problemsOfPod(pod, size))];
    });
  }

  /** The size that the pipes of the service must have, because its status says that it is ready. */
  #sizeOf(service: string): string | undefined {
    const { metadata, status } = this.#cluster.scalings.get(service) ?? {};
    const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
    if (!isReady || status?.observedGeneration !== metadata?.generation) return undefined;
    const size = sizeIn(status?.desired ?? {});
    return size && formatSize(size);
  }

  #pipeOf({ metadata }: Pod): Workload | undefined {
    const { deployments, workloads } = this.#cluster;
    const statefulSet = workloads?.statefulSet.object;
    if (statefulSet && ownerUidOf(metadata) === statefulSet.metadata.uid) return statefulSet;
    const set = workloads?.replicaSets.get(metadata.ownerReferences?.[0]?.name ?? "");
    return deployments.get(set?.metadata.ownerReferences?.[0]?.name ?? "");
  }
}

/** Empty if the workload is no pipe. */
function serviceOf(pipe: Workload): string {
  return isPipe(pipe) ? (pipe.metadata.labels?.[SERVICE_LABEL] ?? "") : "";
}

function problemsOfTemplate({ metadata, spec }: Workload, size: string | undefined): string[] {
  const actual = sizeOf(spec.template.spec.containers[0]);
  return size === undefined || actual === size ? [] : [`the template of ${metadata.name} has ${actual}`];
}

function problemsOfPod(pod: Pod, size: string | undefined): string[] {
  if (size === undefined || !isActive(pod)) return [];
  const { metadata, spec, status } = pod;
  const wanted = sizeOf(spec.containers[0]);
  const actual = status?.containerStatuses ? sizeOf(status.containerStatuses[0]) : wanted;
  if (wanted === size && actual === size) return [];
  return [`the pod ${metadata.name} has ${wanted === actual ? wanted : `${wanted}, and runs ${actual}`}`];
}

/** The size in the requests of a container, or of its status. */
export function sizeOf(
  container: { readonly resources?: Container["resources"] | undefined } | undefined,
): string {
  const { requests = {} } = container?.resources ?? {};
  const size = sizeOfQuantities(requests["cpu"], requests["memory"]);
  return size ? formatSize(size) : "none";
}
