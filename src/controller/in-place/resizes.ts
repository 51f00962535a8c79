import { isWithoutRight, serverMessage } from "../../kube/errors.ts";
import type { Pod, ReplicaSet } from "../../kube/objects.ts";
import { PODS, REPLICA_SETS } from "../../kube/paths.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ReflectorClient } from "../../runtime/list-watch.ts";
import { Reflector } from "../../runtime/reflector.ts";
import { Store } from "../../runtime/store.ts";
import type { DeploymentView } from "../observe/deployment-view.ts";
import { type PodView, toPodView } from "./pod-view.ts";
import { type ReplicaSetView, toReplicaSetView } from "./replica-set-view.ts";
import type { Fallback, InPlaceView } from "./view.ts";

export interface InPlaceResizesOptions {
  readonly client: ReflectorClient;
  readonly clock: Clock;
  readonly pipes: Store<DeploymentView>;
  /** Reconciles a service again. */
  readonly enqueue: (serviceId: string) => void;
  /** A problem with the API server, already being retried. */
  readonly onProblem: (problem: unknown) => void;
  /** A pipe gets a rollout. */
  readonly onFallback: (pipe: DeploymentView, fallback: Fallback) => void;
}

const LIST_TIMEOUT_MS = 10_000;

interface Resize {
  readonly pipe: DeploymentView;
  readonly size: string;
  readonly pods: Store<PodView>;
  readonly replicaSets: Store<ReplicaSetView>;
  readonly watches: AbortController;
  readonly resizedAtMs: Map<string, number>;
  isReady: boolean;
  pausedAtMs: number | undefined;
  fallback: Fallback | undefined;
}

/**
 * The resizes in place that this process tries, at most one for each pipe. Pods and ReplicaSets are watched only while
 * one is in progress. Nothing here is needed to continue after a crash (next-step.ts).
 */
export class InPlaceResizes {
  readonly #options: InPlaceResizesOptions;
  /** By UID of the Deployment. */
  readonly #resizes = new Map<string, Resize>();

  constructor(options: InPlaceResizesOptions) {
    this.#options = options;
    options.pipes.onChange((change) => {
      if (change.type === "deleted") this.end(change.previous.metadata.uid);
    });
  }

  /** Number of resizes in progress. Each counts as a rollout. */
  get active(): number {
    return [...this.#resizes.values()].filter(({ fallback }) => !fallback).length;
  }

  view(pipe: DeploymentView): InPlaceView | undefined {
    const resize = this.#resizes.get(pipe.metadata.uid);
    if (!resize) return undefined;
    const nowMs = this.#options.clock.monotonic();
    resize.pausedAtMs = pipe.isPausedByUs ? (resize.pausedAtMs ?? nowMs) : undefined;
    const replicaSets = [...resize.replicaSets.values()].filter(
      ({ deploymentUid }) => deploymentUid === pipe.metadata.uid,
    );
    const owners = new Set(replicaSets.map(({ metadata }) => metadata.uid));
    const pods = [...resize.pods.values()].filter(
      ({ isBeingDeleted, replicaSetUid = "" }) => !isBeingDeleted && owners.has(replicaSetUid),
    );
    // The time of a resize by another process is unknown, so it starts now.
    for (const { metadata, resize: condition } of pods) {
      if (condition && !resize.resizedAtMs.has(metadata.uid)) resize.resizedAtMs.set(metadata.uid, nowMs);
    }
    const { size, isReady, fallback, resizedAtMs, pausedAtMs } = resize;
    return { size, isReady, fallback, pods, replicaSets, resizedAtMs, pausedAtMs, nowMs };
  }

  /**
   * Begins to watch the pods and ReplicaSets of a pipe. If they cannot be listed in time, or if the controller has no
   * permission to watch them, the pipe gets a rollout.
   *
   * @param selector of the Deployment
   */
  async begin(pipe: DeploymentView, size: string, selector: string): Promise<void> {
    const { client, clock, enqueue } = this.#options;
    const { uid, namespace } = pipe.metadata;
    this.end(uid);
    const resize: Resize = {
      ...{ pipe, size, pods: new Store<PodView>(), replicaSets: new Store<ReplicaSetView>() },
      ...{ watches: new AbortController(), resizedAtMs: new Map<string, number>() },
      ...{ isReady: false, pausedAtMs: undefined, fallback: undefined },
    };
    this.#resizes.set(uid, resize);
    const { pods, replicaSets, watches } = resize;
    const ended = Promise.withResolvers<void>();
    const onProblem = (problem: unknown) => {
      if (!isWithoutRight(problem)) return this.#options.onProblem(problem);
      this.#endWatches(resize, { reason: "Forbidden", message: serverMessage(problem) });
      ended.resolve();
    };
    const common = { client, clock, namespace, labelSelector: selector, onProblem };
    const reflectors = [
      new Reflector<PodView, Pod>({ ...common, resource: PODS, store: pods, project: toPodView }),
      new Reflector<ReplicaSetView, ReplicaSet>({
        ...common,
        ...{ resource: REPLICA_SETS, store: replicaSets, project: toReplicaSetView },
      }),
    ];
    for (const store of [pods, replicaSets]) store.onChange(() => enqueue(pipe.serviceId));
    for (const reflector of reflectors) {
      reflector.run(watches.signal).catch((error: unknown) => {
        if (!watches.signal.aborted) onProblem(error);
      });
    }
    const message = "its pods and ReplicaSets could not be listed in time";
    const cancel = clock.after(LIST_TIMEOUT_MS, () => {
      this.#endWatches(resize, { reason: "ListTimeout", message });
      ended.resolve();
    });
    const synced = Promise.all(reflectors.map((each) => each.synced)).then(() => {
      resize.isReady = true;
    });
    await Promise.race([synced, ended.promise]);
    cancel();
  }

  #endWatches(resize: Resize, fallback: Fallback): void {
    const { pipe, size, watches } = resize;
    // A later resize of the pipe has watches of its own.
    if (watches.signal.aborted) return;
    this.fellBack(pipe, size, fallback);
    this.#options.enqueue(pipe.serviceId);
  }

  resized(uid: string, pod: string): void {
    this.#resizes.get(uid)?.resizedAtMs.set(pod, this.#options.clock.monotonic());
  }

  /** Stores the response to one of our writes. */
  observePod(uid: string, pod: PodView): void {
    this.#resizes.get(uid)?.pods.observe(pod);
  }

  observeReplicaSet(uid: string, replicaSet: ReplicaSetView): void {
    this.#resizes.get(uid)?.replicaSets.observe(replicaSet);
  }

  /** Remembers that the pipe gets a rollout, until another size is requested. */
  fellBack(pipe: DeploymentView, size: string, fallback: Fallback): void {
    const { uid } = pipe.metadata;
    this.#options.onFallback(pipe, fallback);
    this.#resizes.get(uid)?.watches.abort();
    this.#resizes.set(uid, {
      ...{ pipe, size, fallback, pods: new Store<PodView>(), replicaSets: new Store<ReplicaSetView>() },
      ...{ watches: new AbortController(), resizedAtMs: new Map<string, number>() },
      ...{ isReady: true, pausedAtMs: undefined },
    });
  }

  end(uid: string): void {
    this.#resizes.get(uid)?.watches.abort();
    this.#resizes.delete(uid);
  }

  /** Ends those of a service that are not in progress any more. @param active UIDs of the Deployments */
  keep(serviceId: string, active: ReadonlySet<string>): void {
    for (const [uid, { pipe, fallback }] of this.#resizes) {
      if (pipe.serviceId === serviceId && !fallback && !active.has(uid)) this.end(uid);
    }
  }

  endAll(): void {
    for (const uid of [...this.#resizes.keys()]) this.end(uid);
  }
}
