import { RETRY_ANNOTATION, SERVICE_LABEL } from "../../../src/controller/names.ts";
import type { Pod } from "../../../src/kube/pods.ts";
import type { Deployment } from "../../../src/kube/workloads.ts";
import type { FakeClock } from "../fakes/fake-clock.ts";
import { isSame, type ScalingObject } from "./objects.ts";
import { UNSCHEDULABLE } from "./pod-status.ts";
import { sizeOf } from "./ready-judge.ts";
import { isSameTemplate } from "./replica-sets.ts";
import type { SimulatedWorkloads } from "./workloads.ts";

/** The objects that are judged. */
interface Judged {
  readonly clock: FakeClock;
  readonly scalings: ReadonlyMap<string, ScalingObject>;
  readonly workloads: SimulatedWorkloads | undefined;
}

/** The controller may start a rollout for so long after it has found room for it, and the search takes time too. */
const ROOM_KNOWN_MS = 70_000;

/** The API server refused a size of a pod. */
interface Refusal {
  readonly atMs: number;
  /** The version of the limits. */
  readonly limits: number;
}

/** A restart of pods that the controller began. */
interface Restart {
  readonly size: string;
  readonly sentMs: number;
}

/**
 * Checks that the controller restarts no pod for a size that cannot succeed: one that the API server has refused for
 * this pipe and would refuse again, or one that no node has room for if the pipe stops its old pods first.
 */
export class RestartJudge {
  readonly violations: string[] = [];
  readonly #cluster: Judged;
  /** When the API server refused a size for a pipe, by name and size. Every change of the limits may allow it. */
  readonly #refused = new Map<string, Refusal>();
  /** The last restart of each pipe that the controller began, unless another writer has changed the pipe since then. */
  readonly #restarts = new Map<string, Restart>();
  /** The requested retry at the last restart of each pipe; `undefined` if there was none. */
  readonly #usedRetries = new Map<string, string | undefined>();
  /** When a pod of each pipe last got the node or another size, on the monotonic clock. */
  readonly #taken = new Map<string, number>();
  readonly #placed = new Map<string, string>();

  constructor(cluster: Judged) {
    this.#cluster = cluster;
  }

  /** The controller tried to resize a pod of a pipe. */
  tried(pod: Pod, spec: Pod["spec"], isAccepted: boolean): void {
    const { clock, workloads } = this.#cluster;
    const key = keyOf(this.#pipeOf(pod), sizeOf(spec.containers[0]));
    const limits = workloads?.scheduler.limits.version ?? 0;
    if (isAccepted) this.#refused.delete(key);
    else this.#refused.set(key, { atMs: clock.monotonic(), limits });
  }

  /** The controller has written a Deployment. */
  wrote(
    before: Deployment,
    after: Deployment,
    { sentMs, isRollback }: { readonly sentMs: number; readonly isRollback: boolean },
  ): void {
    const { name } = after.metadata;
    if (!this.#replacesPods(before, after)) return;
    const size = sizeOf(after.spec.template.spec.containers[0]);
    const { metadata } = this.#cluster.scalings.get(after.metadata.labels?.[SERVICE_LABEL] ?? "") ?? {};
    const retry = metadata?.annotations?.[RETRY_ANNOTATION];
    const isRequested = retry !== undefined && this.#usedRetries.get(name) !== retry;
    this.#usedRetries.set(name, retry);
    this.#restarts.delete(name);
    // If new pods start first, a rollout only shows the refusal again.
    if (isRollback || after.spec.strategy?.type !== "Recreate") return;
    const refused = this.#refused.get(keyOf(name, size));
    if (
      refused &&
      refused.atMs < sentMs &&
      refused.limits === this.#cluster.workloads?.scheduler.limits.version
    )
      this.#report(
        `${name} restarts for ${size}, which the API server refused ${(sentMs - refused.atMs) / 1000} s before`,
      );
    // People may ask for an attempt.
    if (!isRequested) this.#restarts.set(name, { size, sentMs });
  }

  /** Another writer has changed a Deployment. */
  changedByOthers({ metadata: { name } }: Deployment): void {
    this.#restarts.delete(name);
  }

  /** A pod has changed. */
  pod(pod: Pod): void {
    const pipe = this.#pipeOf(pod);
    this.#noteRoom(pod, pipe);
    const restart = this.#restarts.get(pipe);
    const isWaiting = pod.status?.conditions?.some(({ reason }) => reason === UNSCHEDULABLE.reason);
    if (!restart || !isWaiting || sizeOf(pod.spec.containers[0]) !== restart.size) return;
    this.#restarts.delete(pipe);
    const isTaken = [...this.#taken].some(
      ([by, atMs]) => by !== pipe && atMs > restart.sentMs - ROOM_KNOWN_MS,
    );
    if (!isTaken)
      this.#report(`${pipe} has stopped its pods for ${restart.size}, which the node has no room for`);
  }

  #noteRoom({ metadata, spec }: Pod, pipe: string): void {
    if (spec.nodeName === undefined) return;
    const size = sizeOf(spec.containers[0]);
    if (this.#placed.get(metadata.uid) !== size) this.#taken.set(pipe, this.#cluster.clock.monotonic());
    this.#placed.set(metadata.uid, size);
  }

  #replacesPods(before: Deployment, { metadata, spec }: Deployment): boolean {
    const { workloads } = this.#cluster;
    if (!workloads || spec.paused || spec.replicas === 0) return false;
    if (isSame(before.spec.template, spec.template) && before.spec.paused === spec.paused) return false;
    const sets = workloads
      .replicaSetsOf(metadata.uid)
      .filter((set) => workloads.scheduler.activeOf(set).length > 0);
    return sets.some((set) => !isSameTemplate(set.spec.template, spec.template));
  }

  #pipeOf({ metadata }: Pod): string {
    const set = this.#cluster.workloads?.replicaSets.get(metadata.ownerReferences?.[0]?.name ?? "");
    return set?.metadata.ownerReferences?.[0]?.name ?? "";
  }

  #report(text: string): void {
    this.violations.push(`${this.#cluster.clock.monotonic() / 1000} s: ${text}`);
  }
}

function keyOf(pipe: string, size: string): string {
  return `${pipe} ${size}`;
}
