import { CONTROLLER_FIELD_MANAGER } from "../../../src/crd/names.ts";
import { mergePatch } from "../../../src/runtime/merge-patch.ts";
import type { Kinds } from "./history.ts";
import type { JudgeContext } from "./judge-context.ts";
import { recreationFaults, requestedSize } from "./recreation.ts";
import type { ServiceRecord } from "./service-record.ts";
import { statusFaults } from "./status-faults.ts";

type Scaling = Kinds["PipeScaling"];

/** Checks what the controller writes into a status, and the PipeScalings that it creates. */
export class ScalingJudge {
  readonly #context: JudgeContext;
  readonly #scalings = new Map<string, Scaling>();
  /** Services that have or had a PipeScaling. */
  readonly #known = new Set<string>();

  constructor(context: JudgeContext) {
    this.#context = context;
  }

  /** Returns the PipeScaling of a service. */
  scalingOf({ id }: ServiceRecord): Scaling | undefined {
    return [...this.#scalings.values()].find(({ metadata }) => metadata.name === id);
  }

  gone(object: Scaling): void {
    this.#scalings.delete(object.metadata.uid);
  }

  seen(object: Scaling, version: bigint, isInitial: boolean): void {
    const { uid, name } = object.metadata;
    const before = this.#scalings.get(uid);
    const isFirst = !this.#known.has(name);
    this.#known.add(name);
    this.#scalings.set(uid, object);
    if (isInitial || this.#context.isUnseen("PipeScaling", version)) return;
    const isMadeByUs =
      before === undefined &&
      (object.metadata.managedFields ?? []).some(({ manager }) => manager === CONTROLLER_FIELD_MANAGER);
    if (!isMadeByUs && !isOurStatus(before, object)) return;
    const change = mergePatch(before?.status ?? {}, object.status ?? {});
    this.#context.wrote("PipeScaling", object, ` (${JSON.stringify(change)})`);
    if (!before) {
      this.#created(object, version, isFirst);
      return;
    }
    // The write had a precondition on this version, so the status must have been true at some time since then.
    const since = BigInt(before.metadata.resourceVersion);
    const service = this.#context.services.get(name);
    const ran = (size: string) =>
      this.#context.isUnseen("Deployment", version) || service === undefined || service.ranSince(size, since);
    for (const fault of statusFaults(object, ran)) this.#context.fault(object, fault);
  }

  /**
   * Accepts its size, because the controller derived it from the pipes, without a new request. The first one of a service
   * may have the size of its largest pipe (`AdoptionJudge`).
   */
  #created(object: Scaling, version: bigint, isFirst: boolean): void {
    const service = this.#context.services.get(object.metadata.name);
    if (!service || this.#context.isUnseen("Deployment", version)) return;
    const faults = isFirst ? [] : recreationFaults(object, service.living);
    for (const fault of faults) this.#context.fault(object, fault);
    const size = requestedSize(object);
    if (size !== undefined && !object.spec?.suspend) service.accept(size, version);
  }
}

/** Other writers only empty a status, which then has the defaults of its schema. */
function isOurStatus(before: Scaling | undefined, { status = {} }: Scaling): boolean {
  const { conditions = [] } = status;
  return (
    before !== undefined && conditions.length > 0 && JSON.stringify(before.status) !== JSON.stringify(status)
  );
}
