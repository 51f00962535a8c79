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
import { type Observation, WatchedKind } from "./watched-kind.ts";

/**
 * Watches namespaces and keeps every observed version. It does not use the runtime of the controller, whose faults it
 * would share. After an outage of the API server it continues from its last version, or else lists again and records a
 * gap.
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
   * Resolves when all existing objects have been observed.
   *
   * @param namespaces of pipes; `undefined` for all namespaces
   * @param records namespace of the records and of the controllers' Lease
   */
  async watch(namespaces: readonly (string | undefined)[], records: string): Promise<void> {
    const leases = collectionPath(LEASES, records);
    const begun = namespaces.flatMap((namespace) => {
      const at = (resource: Resource) => collectionPath(resource, namespace);
      return [
        this.#begin("Deployment", at(DEPLOYMENTS), (observed) => ({ kind: "Deployment", ...observed })),
        this.#begin("ReplicaSet", at(REPLICA_SETS), (observed) => ({ kind: "ReplicaSet", ...observed })),
        this.#begin("Pod", at(PODS), (observed) => ({ kind: "Pod", ...observed })),
        this.#begin("PipeScaling", at(PIPE_SCALINGS), (observed) => ({ kind: "PipeScaling", ...observed })),
        this.#begin("Event", at(EVENTS), (observed) => ({ kind: "Event", ...observed })),
      ];
    });
    begun.push(this.#begin("Lease", leases, (observed) => ({ kind: "Lease", ...observed })));
    await Promise.all(begun);
  }

  /** Resolves when the current state of the API server has been observed. */
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
    sighting: (observed: Observation<Kinds[K]> & Pick<Sighting, "atMs">) => Sighting,
  ): Promise<void> {
    const watched = new WatchedKind<Kinds[K]>({
      client: this.#client,
      path,
      signal: this.#ending.signal,
      onObservation: (observed) => {
        const entry = sighting({ ...observed, atMs: performance.now() });
        const version = versionOf(entry);
        this.entries.push(entry);
        if (version > this.#newest) this.#newest = version;
      },
      onGap: (after, until) => this.entries.push({ type: "gap", kind, after, until }),
    });
    await watched.begin();
    this.#watched.push({ isCaughtUp: () => watched.isCaughtUp(), ended: watched.run() });
  }
}
