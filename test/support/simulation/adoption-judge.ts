import { RETRY_ANNOTATION, SERVICE_LABEL } from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { sizeIn } from "../../../src/crd/size-fields.ts";
import { sizeOfQuantities } from "../../../src/domain/quantity.ts";
import type { Size } from "../../../src/domain/size.ts";
import { formatSize, sameSize } from "../../../src/domain/size.ts";
import { managersOf } from "../../../src/kube/managers.ts";
import type { Container, Pod } from "../../../src/kube/pods.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { TIERS } from "../fixtures/tiers.ts";
import type { Writer } from "./managed-fields.ts";
import { isPipe, isSame, type ScalingObject } from "./objects.ts";
import { sizeOf } from "./ready-judge.ts";

/** The objects that are judged. */
interface Judged {
  readonly clock: FakeClock;
  readonly deployments: ReadonlyMap<string, Deployment>;
  readonly scalings: ReadonlyMap<string, ScalingObject>;
}

/** A write for the service that the pipe belonged to before may take so long: the end of a commit, for example. */
const IN_FLIGHT_MS = 45_000;

/** Other fields of a PipeScaling, such as `suspend`, request no size. */
const SIZE_FIELDS = ["replicaCpuMillicores", "replicaMemoryGb", "boost"] as const;

type By = Writer | "status";

/**
 * Checks that labels take nothing away from a running workload: until somebody requests a size, the controller changes
 * neither the template nor a pod of a pipe, unless the pipe is smaller than another one of a new service, or larger
 * than the maximum of its tier. Even then, no pod is replaced, unless the pipe moved, or had the size and its tier was
 * changed.
 */
export class AdoptionJudge {
  readonly violations: string[] = [];
  readonly #cluster: Judged;
  /**
   * Services with a PipeScaling that a person has created or asked to retry, or whose size or boost a person has
   * written, now or before.
   */
  readonly #requested = new Set<string>();
  /** The size of a pipe that joined a service without a PipeScaling, by UID and service, until other writers change it. */
  readonly #adopted = new Map<
    string,
    { readonly size: string; readonly sinceMs: number; readonly isMoved: boolean }
  >();

  /** When a pipe last left a service, by UID. It may be without labels for a moment before it joins another one. */
  readonly #leftAtMs = new Map<string, number>();

  #tierChangedAtMs = 0;

  constructor(cluster: Judged) {
    this.#cluster = cluster;
  }

  /** A person has moved the organization to another tier. */
  changedTier(): void {
    this.#tierChangedAtMs = this.#cluster.clock.monotonic();
  }

  wroteScaling(before: ScalingObject | undefined, after: ScalingObject, by: Writer): void {
    const [was, is] = [before, after].map((each) => [
      each?.metadata.uid,
      each?.metadata.annotations?.[RETRY_ANNOTATION],
      ...SIZE_FIELDS.map((field) => each?.spec?.[field]),
      // A size that is requested again does not change.
      managersOf(
        each?.metadata.managedFields,
        SIZE_FIELDS.map((field) => ["f:spec", `f:${field}`]),
      ),
    ]);
    if (by.manager !== CONTROLLER_FIELD_MANAGER && !isSame(was, is)) this.#requested.add(after.metadata.name);
  }

  wrotePipe(before: Deployment | undefined, after: Deployment, by: By): void {
    const service = serviceOf(after);
    const isOurs = by !== "status" && by.manager === CONTROLLER_FIELD_MANAGER;
    const [was, is] = [before, after].map((each) => each?.spec.template.spec.containers[0]);
    const key = keyOf(after);
    if (isOurs && sizeOf(was) !== sizeOf(is))
      this.#check(after, was, is, `the template of ${after.metadata.name}`, isRollout(before, after));
    // A pipe that joins a service with a PipeScaling gets the size of the service.
    const joins = (!before || serviceOf(before) !== service) && !this.#cluster.scalings.has(service);
    const sinceMs = this.#cluster.clock.monotonic();
    const { uid } = after.metadata;
    if (before && ![service, ""].includes(serviceOf(before))) this.#leftAtMs.set(uid, sinceMs);
    const isMoved = sinceMs - (this.#leftAtMs.get(uid) ?? Number.NEGATIVE_INFINITY) < IN_FLIGHT_MS;
    if (joins && service !== "") this.#adopted.set(key, { size: sizeOf(is), sinceMs, isMoved });
    else if (!isOurs && sizeOf(was) !== sizeOf(is)) this.#adopted.delete(key);
    if (before && keyOf(before) !== key) this.#adopted.delete(keyOf(before));
  }

  wrotePod(before: Pod | undefined, after: Pod, pipe: Deployment | undefined, by: By): void {
    if (!before || !pipe || by === "status" || by.manager !== CONTROLLER_FIELD_MANAGER) return;
    const [was, is] = [before, after].map(({ spec }) => spec.containers[0]);
    // A pod with another size may be returned to the size of its template.
    if (sizeOf(was) === this.#adopted.get(keyOf(pipe))?.size)
      this.#check(pipe, was, is, `the pod ${after.metadata.name}`);
  }

  #check(pipe: Deployment, before: Sized, after: Sized, what: string, isRollout = false): void {
    const service = serviceOf(pipe);
    const adopted = this.#adopted.get(keyOf(pipe));
    if (this.#requested.has(service) || !adopted) return;
    if (adopted.isMoved && this.#cluster.clock.monotonic() - adopted.sinceMs < IN_FLIGHT_MS) return;
    const [was, is] = [before, after].map(amountsOf);
    const requested = sizeIn(this.#cluster.scalings.get(service)?.spec ?? {});
    if (!was || !is) return;
    const isMaximum = [...TIERS.values()].some(({ maximumSize }) => sameSize(is, maximumSize));
    const isClamped = requested && isMaximum && is.cpuMillicores < requested.cpuMillicores;
    const isLarger = requested && sameSize(is, requested) && holds(is, was) && !sameSize(is, was);
    const isLowered = isClamped && sameSize(was, requested) && this.#tierChangedAtMs > adopted.sinceMs;
    if ((isClamped || isLarger) && (!isRollout || adopted.isMoved || isLowered)) return;
    this.violations.push(
      `${this.#cluster.clock.monotonic() / 1000} s: ${what} got ${formatSize(is)} instead of ${formatSize(was)} without a request`,
    );
  }
}

type Sized = { readonly resources?: Container["resources"] | undefined } | undefined;

function amountsOf(container: Sized): Size | undefined {
  const { requests = {} } = container?.resources ?? {};
  return sizeOfQuantities(requests["cpu"], requests["memory"]);
}

function holds(size: Size, other: Size): boolean {
  return size.cpuMillicores >= other.cpuMillicores && size.memoryGib >= other.memoryGib;
}

function serviceOf(pipe: Deployment): string {
  return isPipe(pipe) ? (pipe.metadata.labels?.[SERVICE_LABEL] ?? "") : "";
}

function keyOf(pipe: Deployment): string {
  return `${pipe.metadata.uid} ${serviceOf(pipe)}`;
}

/** Returns true unless the Deployment has no replicas, or is paused before or after the write, as in a commit. */
function isRollout(before: Deployment | undefined, { spec }: Deployment): boolean {
  return !before?.spec.paused && !spec.paused && (spec.replicas ?? 1) > 0;
}
