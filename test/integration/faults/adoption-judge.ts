import { isDeepStrictEqual } from "node:util";
import { RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { sizeOfQuantities } from "../../../src/domain/quantity.ts";
import { type Size, sameSize } from "../../../src/domain/size.ts";
import { managersOf } from "../../../src/kube/managers.ts";
import { TIERS } from "../../support/fixtures/tiers.ts";
import type { Kinds } from "./history.ts";
import { IN_FLIGHT_MS, type JudgeContext, type Moment } from "./judge-context.ts";
import { pipeContainer, serviceOf } from "./pipe-view.ts";
import { isSizedByUs, type SizedObject, sizeIn } from "./sized-object.ts";
import type { Workloads } from "./workloads.ts";

type Deployment = Kinds["Deployment"];
type Scaling = Kinds["PipeScaling"];

/** Other fields of a PipeScaling, such as `suspend`, request no size. */
const SIZE_FIELDS = ["replicaCpuMillicores", "replicaMemoryGb", "boost"] as const;

/**
 * Checks that labels take nothing away from a running workload: until somebody requests a size, the controller changes
 * neither the template nor a pod of a pipe, unless the pipe is smaller than another one of a new service, or larger than
 * the maximum of its tier. Even then, no pod is replaced.
 */
export class AdoptionJudge {
  readonly #context: JudgeContext;
  readonly #workloads: Workloads;
  /** The last version of each PipeScaling, by service. */
  readonly #created = new Map<string, Scaling>();
  /** Services that somebody has requested a size for. */
  readonly #requested = new Set<string>();
  /** UIDs of pipes that were labeled before their service had a PipeScaling, and the sizes that they had. */
  readonly #adopted = new Map<string, string | undefined>();
  /** When a pipe last left a service, by UID. It may be without labels for a moment before it joins another one. */
  readonly #leftAtMs = new Map<string, number>();

  constructor(context: JudgeContext, workloads: Workloads) {
    this.#context = context;
    this.#workloads = workloads;
  }

  scaling(object: Scaling, isBlind: boolean): void {
    const { name, managedFields = [], annotations = {} } = object.metadata;
    const isWritten = managersOf(
      managedFields,
      SIZE_FIELDS.map((field) => ["f:spec", `f:${field}`]),
    ).some((manager) => manager !== CONTROLLER_FIELD_MANAGER);
    const isRequested = isWritten || annotations[RETRY_ANNOTATION] !== undefined;
    const before = this.#created.get(name);
    const isOfOthers = !managedFields.some(({ manager }) => manager === CONTROLLER_FIELD_MANAGER);
    const isChanged =
      before && !SIZE_FIELDS.every((field) => isDeepStrictEqual(before.spec?.[field], object.spec?.[field]));
    if (isBlind || isRequested || isChanged || (!before && isOfOthers)) this.#requested.add(name);
    this.#created.set(name, object);
  }

  /** The size that the service had before counts as requested. */
  goneScaling({ metadata: { name } }: Scaling): void {
    this.#requested.add(name);
  }

  deployment(before: Deployment | undefined, after: Deployment, isBlind: boolean, { atMs }: Moment): void {
    const { uid } = after.metadata;
    const service = serviceOf(after);
    const [was, is] = [before, after].map((each) => each && sizeIn(each, pipeContainer(each)));
    if (!before || serviceOf(before) !== service) {
      if (before && serviceOf(before) !== undefined) this.#leftAtMs.set(uid, atMs);
      // A write for the service before may be in flight.
      const sinceMs = atMs - (this.#leftAtMs.get(uid) ?? Number.NEGATIVE_INFINITY);
      const isNew = service !== undefined && sinceMs > IN_FLIGHT_MS;
      if (isNew && !this.#created.has(service) && !isBlind) this.#adopted.set(uid, is);
      else this.#adopted.delete(uid);
    } else if (was !== is) {
      const isRollout = !before.spec.paused && !after.spec.paused && (after.spec.replicas ?? 1) > 0;
      if (isSizedByUs(before, after, pipeContainer(before))) this.#check(before, after, after, isRollout);
      else this.#adopted.delete(uid);
    }
  }

  pod(before: Kinds["Pod"] | undefined, after: Kinds["Pod"]): void {
    const pipe = this.#workloads.deployments.get(this.#workloads.deploymentOf(after) ?? "");
    const container = pipe && pipeContainer(pipe);
    if (!before || !pipe || !isSizedByUs(before, after, container)) return;
    // A pod gets the size that its owner has given the template.
    if (sizeIn(before, container) === this.#adopted.get(pipe.metadata.uid))
      this.#check(before, after, pipe, false);
  }

  #check<T extends SizedObject>(before: T, after: T, pipe: Deployment, isRollout: boolean): void {
    const service = this.#context.serviceFor(pipe);
    if (!service || !this.#adopted.has(pipe.metadata.uid) || this.#requested.has(service.id)) return;
    const [was, is] = [before, after].map((each) => amountsIn(each, pipeContainer(pipe)));
    if (!was || !is) return;
    const { replicaCpuMillicores: millicores } = this.#created.get(service.id)?.spec ?? {};
    const isMaximum = [...TIERS.values()].some(({ maximumSize }) => sameSize(is, maximumSize));
    const isClamped = isMaximum && millicores !== undefined && is.cpuMillicores < millicores;
    const isRequestedSize = millicores === is.cpuMillicores;
    const holds = is.cpuMillicores >= was.cpuMillicores && is.memoryGib >= was.memoryGib;
    const isAllowed = isClamped || (isRequestedSize && holds && !sameSize(is, was));
    if (isAllowed && !isRollout) return;
    const sizes = `${sizeIn(after, pipeContainer(pipe))} instead of ${sizeIn(before, pipeContainer(pipe))}`;
    this.#context.fault(after, `the controller applied ${sizes} to an adopted pipe without a request`);
  }
}

function amountsIn(object: SizedObject, name: string | undefined): Size | undefined {
  const { containers } = "template" in object.spec ? object.spec.template.spec : object.spec;
  const { requests = {} } = containers.find((each) => each.name === name)?.resources ?? {};
  return sizeOfQuantities(requests["cpu"], requests["memory"]);
}
