import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { PIPE_SCALINGS } from "../../../src/crd/names.ts";
import type { KubeClient } from "../../../src/kube/client.ts";
import {
  collectionPath,
  DEPLOYMENTS,
  EVENTS,
  LEASES,
  PODS,
  REPLICA_SETS,
  type Resource,
} from "../../../src/kube/paths.ts";
import { type Entry, type Kind, type Kinds, type Sighting, versionOf } from "./history.ts";
import { type Told, WatchedKind } from "./watched-kind.ts";

/**
 * Watches namespaces by means of its own, so that a fault of the controller's runtime cannot hide here, and
 * keeps every version that it sees. It outlives the API server: it goes on where it was, or, where that is
 * no longer possible, lists anew and says what it may have missed.
 */
export class Observer {
  readonly entries: Entry[] = [];
  readonly #client: KubeClient;
  readonly #ending = new AbortController();
  readonly #watched: { readonly isCaughtUp: () => Promise<boolean>; readonly ended: Promise<void> }[] = [];
  #newest = 0n;

  constructor(client: KubeClient) {
    this.#client = client;
  }

  /** The newest version that any watch has delivered. */
  get newest(): bigint {
    return this.#newest;
  }

  /**
   * Resolves once all that is there has been seen.
   *
   * @param namespaces of pipes; `undefined` is all of them
   * @param records namespace of the records and of the controllers' Lease
   */
  async watch(namespaces: readonly (string | undefined)[], records: string): Promise<void> {
    const leases = collectionPath(LEASES, records);
    const begun = namespaces.flatMap((namespace) => {
      const at = (resource: Resource) => collectionPath(resource, namespace);
      return [
        this.#begin("Deployment", at(DEPLOYMENTS), (told) => ({ kind: "Deployment", ...told })),
        this.#begin("ReplicaSet", at(REPLICA_SETS), (told) => ({ kind: "ReplicaSet", ...told })),
        this.#begin("Pod", at(PODS), (told) => ({ kind: "Pod", ...told })),
        this.#begin("PipeScaling", at(PIPE_SCALINGS), (told) => ({ kind: "PipeScaling", ...told })),
        this.#begin("Event", at(EVENTS), (told) => ({ kind: "Event", ...told })),
      ];
    });
    begun.push(this.#begin("Lease", leases, (told) => ({ kind: "Lease", ...told })));
    await Promise.all(begun);
  }

  /** Resolves when everything that the API server has by now has been seen. */
  async caughtUp(): Promise<void> {
    for (const { isCaughtUp } of this.#watched) {
      await waitFor(isCaughtUp, { what: "the observer to catch up", intervalMs: 10 });
    }
  }

  async end(): Promise<void> {
    this.#ending.abort();
    await Promise.all(this.#watched.map(({ ended }) => ended));
  }

  async #begin<K extends Kind>(
    kind: K,
    path: string,
    sighting: (told: Told<Kinds[K]> & Pick<Sighting, "atMs">) => Sighting,
  ): Promise<void> {
    const watched = new WatchedKind<Kinds[K]>({
      client: this.#client,
      path,
      signal: this.#ending.signal,
      tell: (told) => {
        const entry = sighting({ ...told, atMs: performance.now() });
        const version = versionOf(entry);
        this.entries.push(entry);
        if (version > this.#newest) this.#newest = version;
      },
      miss: (after, until) => this.entries.push({ type: "gap", kind, after, until }),
    });
    await watched.begin();
    this.#watched.push({ isCaughtUp: () => watched.isCaughtUp(), ended: watched.run() });
  }
}
