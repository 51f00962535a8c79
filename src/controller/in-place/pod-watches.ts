import { isForbiddenByRbac, isWithoutRoles, serverMessage } from "../../kube/errors.ts";
import type { Pod, ReplicaSet } from "../../kube/objects.ts";
import { PODS, REPLICA_SETS } from "../../kube/paths.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { ReflectorClient } from "../../runtime/list-watch.ts";
import { Reflector } from "../../runtime/reflector.ts";
import { Store } from "../../runtime/store.ts";
import { type PodView, toPodView } from "./pod-view.ts";
import { type ReplicaSetView, toReplicaSetView } from "./replica-set-view.ts";
import type { Fallback } from "./view.ts";

export interface PodWatchesOptions {
  readonly client: ReflectorClient;
  readonly clock: Clock;
  readonly namespace: string;
  /** The selector of the Deployment. */
  readonly labelSelector: string;
  /** A pod or a ReplicaSet changed. */
  readonly onChange: () => void;
  /** A problem with the API server, already being retried. */
  readonly onProblem: (problem: unknown) => void;
  /** The pods cannot be watched. */
  readonly onFailure: (fallback: Fallback) => void;
}

const LIST_TIMEOUT_MS = 10_000;

/** Watches the pods and ReplicaSets of one pipe. */
export class PodWatches {
  readonly pods = new Store<PodView>();
  readonly replicaSets = new Store<ReplicaSetView>();
  readonly #options: PodWatchesOptions;
  readonly #stop = new AbortController();

  constructor(options: PodWatchesOptions) {
    this.#options = options;
  }

  /** Resolves to true when the pods and ReplicaSets are listed, and to false if they cannot be. */
  async start(): Promise<boolean> {
    const { client, clock, namespace, labelSelector, onChange, onProblem, onFailure } = this.#options;
    const failed = Promise.withResolvers<false>();
    const fail = (fallback: Fallback) => {
      failed.resolve(false);
      if (!this.#stop.signal.aborted) onFailure(fallback);
    };
    const common = {
      ...{ client, clock, namespace, labelSelector },
      onProblem: (problem: unknown) => {
        if (!isForbiddenByRbac(problem) || isWithoutRoles(problem)) return onProblem(problem);
        fail({ reason: "Forbidden", message: serverMessage(problem) });
      },
    };
    const reflectors = [
      new Reflector<PodView, Pod>({ ...common, resource: PODS, store: this.pods, project: toPodView }),
      new Reflector<ReplicaSetView, ReplicaSet>({
        ...common,
        ...{ resource: REPLICA_SETS, store: this.replicaSets, project: toReplicaSetView },
      }),
    ];
    for (const store of [this.pods, this.replicaSets]) store.onChange(onChange);
    for (const reflector of reflectors) {
      reflector.run(this.#stop.signal).catch((error: unknown) => {
        if (!this.#stop.signal.aborted) common.onProblem(error);
      });
    }
    const message = "its pods and ReplicaSets could not be listed in time";
    const cancel = clock.after(LIST_TIMEOUT_MS, () => fail({ reason: "ListTimeout", message }));
    const listed = Promise.all(reflectors.map(({ synced }) => synced)).then(() => true);
    const isListed = await Promise.race([listed, failed.promise]);
    cancel();
    return isListed;
  }

  stop(): void {
    this.#stop.abort();
  }
}
