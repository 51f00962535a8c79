import { RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import type { Kinds } from "./history.ts";
import type { JudgeContext, Moment } from "./judge-context.ts";
import { pipeContainer, replicasOf, sizeOfAmounts } from "./pipe-view.ts";
import { isSizedByUs, sizeIn } from "./sized-object.ts";
import type { Workloads } from "./workloads.ts";

type Deployment = Kinds["Deployment"];
type Pod = Kinds["Pod"];

/** The controller may start a rollout for so long after it has found room for it, and the search takes time too. */
const ROOM_KNOWN_MS = 70_000;

/** Sizes that a quota or a LimitRange of a test refuses, whatever else runs. */
export interface Limit {
  readonly serviceId: string;
  /** Larger sizes are refused; `undefined` after the limit was lifted. */
  readonly mostCores: number | undefined;
}

/** A rollout of the controller that stops the old pods first. */
interface Restart {
  readonly size: string;
  readonly atMs: number;
}

/**
 * Checks that the controller stops no pod for a size that cannot succeed: one that the API server has refused for this
 * pipe, or one that no node has room for. Pipes whose new pods start first lose no pod then.
 */
export class RestartJudge {
  readonly #context: JudgeContext;
  readonly #workloads: Workloads;
  readonly #limits = new Map<string, number>();
  /** The refusals in the status since the last change of the limit, by service: pipe and size. */
  readonly #refused = new Map<string, Set<string>>();
  readonly #restarts = new Map<string, Restart>();
  /** The last retry that a person has requested, by service, and the one that a rollout followed, by Deployment. */
  readonly #retries = new Map<string, string>();
  readonly #usedRetries = new Map<string, string>();
  /** When pods last got a node or a larger size, by Deployment. */
  readonly #taken = new Map<string, number>();

  constructor(context: JudgeContext, workloads: Workloads) {
    this.#context = context;
    this.#workloads = workloads;
  }

  limited({ serviceId, mostCores }: Limit): void {
    this.#refused.delete(serviceId);
    if (mostCores === undefined) this.#limits.delete(serviceId);
    else this.#limits.set(serviceId, mostCores);
  }

  scaling({ metadata, status }: Kinds["PipeScaling"]): void {
    const retry = metadata.annotations?.[RETRY_ANNOTATION];
    if (retry !== undefined) this.#retries.set(metadata.name, retry);
    const { replicaCpuMillicores: millicores, replicaMemoryGb: memoryGb } = status?.desired ?? {};
    const limit = this.#limits.get(metadata.name);
    if (limit === undefined || millicores === undefined || memoryGb === undefined) return;
    if (status?.observedGeneration !== metadata.generation || millicores <= limit * 1000) return;
    const refused = this.#refused.get(metadata.name) ?? new Set();
    for (const { pipe, reason } of status?.failures ?? [])
      if (reason === "Refused") refused.add(`${pipe} ${sizeOfAmounts(millicores, memoryGb)}`);
    this.#refused.set(metadata.name, refused);
  }

  deployment(before: Deployment, after: Deployment, { atMs }: Moment): void {
    const { uid, name } = after.metadata;
    const container = pipeContainer(before);
    const size = sizeIn(after, container);
    if (sizeIn(before, container) === size) return;
    this.#restarts.delete(uid);
    const service = this.#context.serviceFor(after);
    const isRollout =
      isSizedByUs(before, after, container) &&
      !before.spec.paused &&
      !after.spec.paused &&
      replicasOf(before) > 0;
    if (!service || !isRollout || !stopsOldPodsFirst(after) || size === undefined) return;
    if (this.#refused.get(service.id)?.has(`${name} ${size}`))
      this.#context.fault(
        after,
        `the controller stops its pods for ${size}, which the API server has refused`,
      );
    // People may ask for an attempt.
    const retry = this.#retries.get(service.id) ?? "";
    const isRequested = (this.#usedRetries.get(uid) ?? "") !== retry;
    this.#usedRetries.set(uid, retry);
    const isRollback = size === service.pipes.get(uid)?.completedSize && service.placeOf(size) === -1;
    if (after.spec.strategy?.type === "Recreate" && !isRequested && !isRollback)
      this.#restarts.set(uid, { size, atMs });
  }

  pod(before: Pod | undefined, after: Pod, { atMs }: Moment): void {
    const uid = this.#workloads.deploymentOf(after) ?? "";
    const deployment = this.#workloads.deployments.get(uid);
    const [was, is] = [before, after].map((each) => each && cpuOf(each));
    if (after.spec.nodeName !== undefined && (before?.spec.nodeName === undefined || was !== is))
      this.#taken.set(uid, atMs);
    const restart = this.#restarts.get(uid);
    if (!restart || !deployment || !isUnschedulable(after)) return;
    if (sizeIn(after, pipeContainer(deployment)) !== restart.size) return;
    this.#restarts.delete(uid);
    const isTaken = [...this.#taken].some(
      ([by, takenMs]) => by !== uid && takenMs > restart.atMs - ROOM_KNOWN_MS,
    );
    if (!isTaken)
      this.#context.fault(
        after,
        `the controller stopped its predecessor, and no node has room for ${restart.size}`,
      );
  }
}

function stopsOldPodsFirst({ spec: { strategy } }: Deployment): boolean {
  const { maxSurge } = strategy?.rollingUpdate ?? {};
  return strategy?.type === "Recreate" || maxSurge === 0 || maxSurge === "0%";
}

function isUnschedulable({ status }: Pod): boolean {
  return status?.conditions?.some(({ reason }) => reason === "Unschedulable") ?? false;
}

function cpuOf({ spec }: Pod): string {
  return spec.containers.map(({ resources }) => resources?.requests?.["cpu"]).join(" ");
}
