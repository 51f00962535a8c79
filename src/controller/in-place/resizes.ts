import type { Clock } from "../../runtime/clock.ts";
import type { ReflectorClient } from "../../runtime/list-watch.ts";
import { keyOf, type Store } from "../../runtime/store.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import type { Timeouts } from "../timeouts.ts";
import { DeferredPods } from "./deferred-pods.ts";
import { type PodOutcome, podOutcome } from "./pod-outcome.ts";
import type { PodView } from "./pod-view.ts";
import { PodWatches } from "./pod-watches.ts";
import type { ReplicaSetView } from "./replica-set-view.ts";
import { endPause, type FallenBack, newResize, type Resize, viewOfFallback, viewOfResize } from "./resize.ts";
import type { DeploymentTemplate, Fallback, InPlaceView } from "./view.ts";

export interface InPlaceResizesOptions {
  readonly client: ReflectorClient;
  readonly clock: Clock;
  readonly pipes: Store<DeploymentView>;
  readonly timeouts: Timeouts;
  /** Reconciles a service again. */
  readonly enqueue: (serviceId: string) => void;
  /** A problem with the API server, already being retried. */
  readonly onProblem: (problem: unknown) => void;
  /** The resize of a pod ended. */
  readonly onPod: (outcome: PodOutcome) => void;
  /** A node gave a pod its size after this time, or did not give it within this time. */
  readonly onDeferred: (durationMs: number) => void;
  /** Takes a turn for a resize that begins. Returns false if there is none, which does not prevent the resize. */
  readonly takeTurn: () => boolean;
  /** A resize ended without a commit, so another one may take its turn. */
  readonly giveBackTurn: () => void;
  /** A resize ended without a rollout, so a resize of another pipe may begin. */
  readonly onEnd: () => void;
  /** A pipe falls back to a rollout. */
  readonly onFallback: (pipe: DeploymentView, fallback: Fallback) => void;
}

/**
 * The resizes in place that this process tries, at most one for each pipe. Pods and ReplicaSets are watched only while
 * one is in progress. Nothing here is needed to continue after a crash (next-step.ts).
 */
export class InPlaceResizes {
  readonly #options: InPlaceResizesOptions;
  /** Those in progress, by UID of the Deployment. */
  readonly #resizes = new Map<string, Resize>();
  /** Number of writes to pods that are in flight, by UID of the Deployment. They can outlast a resize. */
  readonly #podWrites = new Map<string, number>();
  /** Why pipes fall back to a rollout, by UID of the Deployment; at most one for each Deployment in the cache. */
  readonly #fallbacks = new Map<string, FallenBack>();

  constructor(options: InPlaceResizesOptions) {
    this.#options = options;
    options.pipes.onChange((change) => {
      if (change.type !== "deleted") return;
      const { uid } = change.previous.metadata;
      this.end(uid);
      this.#fallbacks.delete(uid);
    });
  }

  /** Number of resizes in progress. */
  get active(): number {
    return this.#resizes.size;
  }

  /** Number of resizes in progress that count as rollouts: all but those of the Deployments that `isIgnored`. */
  countActive(isIgnored: (uid: string) => boolean): number {
    let count = 0;
    for (const uid of this.#resizes.keys()) if (!isIgnored(uid)) count += 1;
    return count;
  }

  /** The resizes of these pipes, by UID of the Deployment. */
  views(pipes: readonly DeploymentView[]): ReadonlyMap<string, InPlaceView> {
    const views = new Map<string, InPlaceView>();
    // Usually there are none.
    if (this.#resizes.size === 0 && this.#fallbacks.size === 0) return views;
    for (const pipe of pipes) {
      const view = this.#view(pipe);
      if (view) views.set(pipe.metadata.uid, view);
    }
    return views;
  }

  #view(pipe: DeploymentView): InPlaceView | undefined {
    const { uid } = pipe.metadata;
    const { clock, enqueue, timeouts } = this.#options;
    const nowMs = clock.monotonic();
    const fallenBack = this.#fallbacks.get(uid);
    if (fallenBack) return viewOfFallback(fallenBack, nowMs);
    const resize = this.#resizes.get(uid);
    if (!resize) return undefined;
    if (pipe.isPausedByUs) {
      // Errors delay the reconciliations of a service, but not the end of the commit.
      const wake = () => enqueue(pipe.serviceId);
      resize.pause ??= { atMs: nowMs, cancel: clock.after(timeouts.commitMs, wake) };
      resize.hasTurn = false;
    } else endPause(resize);
    return viewOfResize(resize, { isWriting: this.#podWrites.has(uid), nowMs });
  }

  /**
   * Begins a resize, which counts from now on, because the checks can take half a minute. If they end with a reason for
   * a rollout, if the pods and ReplicaSets of the pipe cannot be listed in time, or if the controller has no permission
   * to watch them, the pipe falls back to a rollout.
   *
   * @param check returns the selector of the Deployment, a reason for a rollout, or `undefined` if the resize cannot
   *   begin now. The resize may end before the check does; then `isCurrent` returns false.
   */
  async begin(
    pipe: DeploymentView,
    size: string,
    check: (isCurrent: () => boolean) => Promise<{ readonly selector: string } | Fallback | undefined>,
  ): Promise<void> {
    const { uid } = pipe.metadata;
    const resize = this.#add(pipe, size);
    const isCurrent = () => this.#resizes.get(uid) === resize;
    let checked: Awaited<ReturnType<typeof check>>;
    try {
      checked = await check(isCurrent);
    } catch (error) {
      if (isCurrent()) this.end(uid);
      throw error;
    }
    if (!isCurrent()) return;
    if (!checked) this.end(uid);
    else if ("selector" in checked) await this.#watch(resize, checked.selector);
    else this.fellBack(pipe, size, checked);
  }

  #add(pipe: DeploymentView, size: string): Resize {
    const { clock, onDeferred, takeTurn } = this.#options;
    const { uid } = pipe.metadata;
    this.#end(uid, { isFallback: false });
    this.#fallbacks.delete(uid);
    const deferred = new DeferredPods(clock, onDeferred);
    const resize = newResize({ pipe, size, deferred, beganAtMs: clock.monotonic(), hasTurn: takeTurn() });
    this.#resizes.set(uid, resize);
    return resize;
  }

  async #watch(resize: Resize, selector: string): Promise<void> {
    const { client, clock, enqueue, onProblem } = this.#options;
    const { pipe, size } = resize;
    const watches = new PodWatches({
      ...{ client, clock, namespace: pipe.metadata.namespace, labelSelector: selector, onProblem },
      onChange: () => enqueue(pipe.serviceId),
      onFailure: (fallback) => {
        this.fellBack(pipe, size, fallback);
        enqueue(pipe.serviceId);
      },
    });
    resize.watches = watches;
    watches.pods.onChange((change) => resize.deferred.observe(change));
    if (!(await watches.start())) return;
    for (const pod of watches.pods.values()) resize.podsBefore.set(pod.metadata.uid, pod);
    resize.isReady = true;
  }

  /** Makes a write to a pod. */
  async write<T>(uid: string, write: () => Promise<T>): Promise<T> {
    this.#podWrites.set(uid, (this.#podWrites.get(uid) ?? 0) + 1);
    try {
      return await write();
    } finally {
      const left = (this.#podWrites.get(uid) ?? 1) - 1;
      if (left > 0) this.#podWrites.set(uid, left);
      else this.#podWrites.delete(uid);
    }
  }

  /** Call it before the write, so that a restart after it is noticed, and the time of a write without a response. */
  resizing(uid: string, size: string, pod: PodView): void {
    const resize = this.#find(uid, size);
    resize?.podsBefore.set(pod.metadata.uid, pod);
    resize?.triedAtMs.set(pod.metadata.uid, this.#options.clock.monotonic());
  }

  resized(uid: string, size: string, pod: string): void {
    this.#find(uid, size)?.resizedAtMs.set(pod, this.#options.clock.monotonic());
  }

  /** The pipe falls back to a rollout when its pods have their old size again. */
  failed(uid: string, size: string, failure: Fallback): void {
    const resize = this.#find(uid, size);
    if (resize) resize.failure ??= failure;
  }

  /** @returns how many commits of the resize have failed; `undefined` if it is not in progress any more */
  commitFailed(uid: string, size: string): number | undefined {
    const resize = this.#find(uid, size);
    if (resize) resize.failedCommits += 1;
    return resize?.failedCommits;
  }

  /** Another size may be desired when a slow write ends. */
  #find(uid: string, size: string): Resize | undefined {
    const resize = this.#resizes.get(uid);
    return resize?.size === size ? resize : undefined;
  }

  /** Stores the response to one of our writes. */
  observePod(uid: string, pod: PodView): void {
    this.#resizes.get(uid)?.watches?.pods.observe(pod);
  }

  observeReplicaSet(uid: string, replicaSet: ReplicaSetView): void {
    this.#resizes.get(uid)?.watches?.replicaSets.observe(replicaSet);
  }

  observeTemplate(uid: string, template: DeploymentTemplate): void {
    const resize = this.#resizes.get(uid);
    if (resize) resize.template = template;
  }

  /** Remembers that the pipe falls back to a rollout, until another size is requested. */
  fellBack(pipe: DeploymentView, size: string, fallback: Fallback): void {
    const { uid } = pipe.metadata;
    const beganAtMs = this.#resizes.get(uid)?.beganAtMs ?? this.#options.clock.monotonic();
    this.#options.onFallback(pipe, fallback);
    this.#end(uid, { isFallback: true });
    // The Deployment may have been deleted meanwhile.
    if (this.#options.pipes.get(keyOf(pipe))?.metadata.uid === uid)
      this.#fallbacks.set(uid, { size, beganAtMs, fallback });
  }

  end(uid: string): void {
    if (this.#end(uid, { isFallback: false })) this.#options.onEnd();
  }

  /** @returns false if there was none */
  #end(uid: string, { isFallback }: { readonly isFallback: boolean }): boolean {
    const resize = this.#resizes.get(uid);
    if (!resize) return false;
    this.#resizes.delete(uid);
    resize.watches?.stop();
    resize.deferred.end();
    endPause(resize);
    if (resize.hasTurn) this.#options.giveBackTurn();
    const watched = [...(resize.watches?.pods.values() ?? [])];
    const pods = new Map(watched.map((pod) => [pod.metadata.uid, pod]));
    for (const pod of resize.resizedAtMs.keys()) {
      this.#options.onPod(podOutcome(pods.get(pod), { ...resize, isFallback }));
    }
    return true;
  }

  /** Ends those of a service that are not in progress any more. @param active UIDs of the Deployments */
  keep(serviceId: string, active: ReadonlySet<string>): void {
    for (const [uid, { pipe }] of this.#resizes) {
      if (pipe.serviceId === serviceId && !active.has(uid)) this.end(uid);
    }
  }

  endAll(): void {
    for (const uid of [...this.#resizes.keys()]) this.end(uid);
  }
}
