import type { Kinds } from "./history.ts";

type Deployment = Kinds["Deployment"];
type ReplicaSet = Kinds["ReplicaSet"];
type Pod = Kinds["Pod"];

/** A pod, and what the controller did to it. */
export interface PodRecord {
  readonly object: Pod;
  /** The last size that the controller applied; absent if there is none. */
  readonly given?: string;
  readonly writes: number;
  /** Number of requests of the service when these writes were counted. */
  readonly requests: number;
}

/** The newest versions of Deployments, their ReplicaSets and their pods, by UID. */
export class Workloads {
  readonly deployments = new Map<string, Deployment>();
  readonly replicaSets = new Map<string, ReplicaSet>();
  readonly pods = new Map<string, PodRecord>();
  /** Deployments of ReplicaSets, those that were deleted included. */
  readonly #owners = new Map<string, string>();

  /** @returns the UID of its Deployment */
  setReplicaSet(object: ReplicaSet): string | undefined {
    const { uid, ownerReferences = [] } = object.metadata;
    this.replicaSets.set(uid, object);
    const owner = ownerReferences.find(({ kind }) => kind === "Deployment")?.uid;
    if (owner !== undefined) this.#owners.set(uid, owner);
    return owner;
  }

  /** The pods of a Deployment that are not being deleted. */
  podsOf(deploymentUid: string): PodRecord[] {
    return [...this.pods.values()].filter(
      ({ object }) =>
        object.metadata.deletionTimestamp === undefined && this.deploymentOf(object) === deploymentUid,
    );
  }

  /** True if a container of one of its pods was OOM-killed and runs again. */
  ranOutOfMemory(deploymentUid: string): boolean {
    return this.podsOf(deploymentUid).some(({ object }) =>
      object.status?.containerStatuses?.some(
        ({ lastState }) => lastState?.terminated?.reason === "OOMKilled",
      ),
    );
  }

  replicaSetsOf(deploymentUid: string): ReplicaSet[] {
    return [...this.replicaSets.values()].filter(
      ({ metadata }) => this.ownerOf(metadata.uid) === deploymentUid,
    );
  }

  /** The Deployment of a ReplicaSet. */
  ownerOf(replicaSetUid: string): string | undefined {
    return this.#owners.get(replicaSetUid);
  }

  /** The UID of the Deployment that a pod belongs to. */
  deploymentOf({ metadata }: Pod): string | undefined {
    return this.ownerOf(metadata.ownerReferences?.find(({ kind }) => kind === "ReplicaSet")?.uid ?? "");
  }
}
