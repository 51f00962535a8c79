import type { Kinds } from "./history.ts";
import { IN_FLIGHT_MS, type JudgeContext } from "./judge-context.ts";
import { isRolledOut, pipeContainer, replicasOf } from "./pipe-view.ts";
import { hasPods } from "./pod-view.ts";
import { isSizedByUs, sizeIn } from "./sized-object.ts";

type Deployment = Kinds["Deployment"];
type ReplicaSet = Kinds["ReplicaSet"];

/** Checks that the controller replaces no pod of a service with the strategy InPlace. */
export class StrategyJudge {
  readonly #context: JudgeContext;
  /** Since when each service has the strategy. */
  readonly #sinceMs = new Map<string, number>();

  constructor(context: JudgeContext) {
    this.#context = context;
  }

  scaling({ metadata: { name }, spec }: Kinds["PipeScaling"], atMs: number): void {
    if (spec?.strategy !== "InPlace") this.#sinceMs.delete(name);
    else if (!this.#sinceMs.has(name)) this.#sinceMs.set(name, atMs);
  }

  goneScaling({ metadata: { name } }: Kinds["PipeScaling"]): void {
    this.#sinceMs.delete(name);
  }

  /** A rollout that is not complete may be rolled back: it began before. */
  deployment(before: Deployment, after: Deployment, atMs: number): void {
    const isOurs = isSizedByUs(before, after, pipeContainer(before));
    if (!isOurs || before.spec.paused || after.spec.paused || replicasOf(before) === 0) return;
    if (isRolledOut(before) && this.#applies(after, atMs))
      this.#context.fault(after, "the controller started a rollout with the strategy InPlace");
  }

  /** Pods are replaced if a ReplicaSet has another size than its Deployment, which is not paused. */
  replicaSet(before: ReplicaSet | undefined, after: ReplicaSet, deployment: Deployment, atMs: number): void {
    const container = pipeContainer(deployment);
    if (!before || !hasPods(before) || !isSizedByUs(before, after, container)) return;
    const isOther = sizeIn(after, container) !== sizeIn(deployment, container);
    if (isOther && !deployment.spec.paused && this.#applies(deployment, atMs))
      this.#context.fault(after, "the controller replaced its pods with the strategy InPlace");
  }

  #applies(deployment: Deployment, atMs: number): boolean {
    const service = this.#context.serviceFor(deployment);
    const sinceMs = this.#sinceMs.get(service?.id ?? "");
    // A write that was decided for another strategy may be in flight.
    return sinceMs !== undefined && atMs - sinceMs > IN_FLIGHT_MS;
  }
}
