import type { Kind, Kinds } from "./history.ts";
import type { PipeRecord } from "./pipe-record.ts";
import { isPausedByUs, isResumedByUs, isRolledOut, pipeContainer } from "./pipe-view.ts";
import { hasPods, hasRestarted, isResized, runningSize } from "./pod-view.ts";
import type { ServiceRecord } from "./service-record.ts";
import { isSameBesideOurs, isSizedByUs, ownedBeyond, type SizedObject, sizeIn } from "./sized-object.ts";

type Deployment = Kinds["Deployment"];
type ReplicaSet = Kinds["ReplicaSet"];
type Pod = Kinds["Pod"];

/** A pipe, and its service. */
export interface JudgedPipe {
  readonly pipe: PipeRecord;
  readonly service: ServiceRecord;
}

/** Functions of the judge of Deployments. */
export interface JudgeContext {
  /** Returns the pipe of a Deployment, if its service is observed. */
  readonly pipeOf: (deploymentUid: string) => JudgedPipe | undefined;
  /** Records a write of the controller. */
  readonly wrote: (kind: Kind, object: SizedObject) => void;
  /** Checks the number of concurrent resizes. */
  readonly pace: (judged: JudgedPipe, size: string) => void;
  readonly fault: (object: SizedObject, fault: string) => void;
  /** Returns the PipeScaling of a service. */
  readonly scalingOf: (service: ServiceRecord) => Kinds["PipeScaling"] | undefined;
}

/** The commit of a Deployment, which the controller paused to give its template the size of its pods. */
interface Commit {
  readonly pausedAtMs: number;
  /** Sizes of the template since then. */
  readonly sizes: Set<string>;
  readonly template: string;
  /** The ReplicaSet that keeps its pods, if there was exactly one. */
  readonly replicaSet: string | undefined;
}

interface PodRecord {
  readonly object: Pod;
  /** The last size that the controller applied; absent if there is none. */
  readonly given?: string;
  readonly writes: number;
  /** Number of requests of the service when these writes were counted. */
  readonly requests: number;
}

/** 15 s until another leader can take over, and 30 s for it to resume the Deployment. */
const MOST_PAUSED_MS = 45_000;
const MOST_WRITES = 20;
const MOST_PODS = 10;

/** Checks the writes of resizes in place to pods and ReplicaSets, and the pauses of Deployments. */
export class InPlaceJudge {
  readonly #context: JudgeContext;
  /** By UID, like the other maps. */
  readonly #pods = new Map<string, PodRecord>();
  readonly #replicaSets = new Map<string, ReplicaSet>();
  readonly #owners = new Map<string, string>();
  readonly #deployments = new Map<string, Deployment>();
  readonly #commits = new Map<string, Commit>();

  constructor(context: JudgeContext) {
    this.#context = context;
  }

  deployment(before: Deployment | undefined, after: Deployment, atMs: number): void {
    const { uid } = after.metadata;
    this.#deployments.set(uid, after);
    if (!before) return;
    const commit = this.#commits.get(uid);
    if (isPausedByUs(after) && !before.spec.paused) {
      this.#paused(before, after, atMs);
    } else if (commit) {
      this.#continued(commit, before, after, atMs);
    }
    if (isSizedByUs(before, after, pipeContainer(before)) && !after.spec.paused && isRolledOut(before))
      this.#checkRollout(before, after);
    const isLifted = isResumedByUs(before, after) && !isPausedByUs(before);
    if (isLifted)
      this.#context.fault(after, "the controller resumed it, although another writer had paused it");
    this.#note(uid);
  }

  #paused(before: Deployment, after: Deployment, atMs: number): void {
    const { uid } = after.metadata;
    const size = sizeIn(after, pipeContainer(before));
    if (size === sizeIn(before, pipeContainer(before)))
      this.#context.fault(after, "the controller paused it without a new size");
    const inUse = this.#replicaSetsOf(uid).filter(hasPods);
    this.#commits.set(uid, {
      pausedAtMs: atMs,
      sizes: new Set(size === undefined ? [] : [size]),
      template: JSON.stringify(after.spec.template),
      replicaSet: inUse.length === 1 ? inUse[0]?.metadata.uid : undefined,
    });
  }

  /** A rollout replaces pods that were resized in place only if the status says why. */
  #checkRollout(before: Deployment, after: Deployment): void {
    const container = pipeContainer(before);
    const size = sizeIn(after, container);
    const isResizedInPlace = this.#podsOf(after.metadata.uid).some(
      ({ object, given }) => given === size && sizeIn(object, container) === size,
    );
    const service = this.#context.pipeOf(after.metadata.uid)?.service;
    if (!isResizedInPlace || !service) return;
    const { spec = {}, status = {} } = this.#context.scalingOf(service) ?? {};
    const messages = (status.conditions ?? []).map(({ message }) => message).join(" ");
    const isSaid = messages.includes(`The pods of ${after.metadata.name} are being replaced`);
    if (!isSaid && spec.strategy !== "Rollout")
      this.#context.fault(
        after,
        `its pods have ${size} in place, and are replaced without a reason in the status`,
      );
  }

  #continued(commit: Commit, before: Deployment, after: Deployment, atMs: number): void {
    const { uid } = after.metadata;
    const size = sizeIn(after, pipeContainer(after));
    if (size !== undefined) commit.sizes.add(size);
    if (isPausedByUs(before)) this.#checkPause(commit, after, atMs);
    const isChanged = JSON.stringify(after.spec.template) !== commit.template;
    const isResumedByOthers = before.spec.paused && !after.spec.paused && !isResumedByUs(before, after);
    // Now its owner is responsible for the pods.
    if (isChanged || isResumedByOthers) this.#commits.delete(uid);
  }

  #checkPause({ pausedAtMs }: Commit, after: Deployment, atMs: number): void {
    const pausedMs = Math.round(atMs - pausedAtMs);
    if (pausedMs > MOST_PAUSED_MS)
      this.#context.fault(after, `the controller left it paused for ${pausedMs} ms`);
  }

  goneDeployment(uid: string): void {
    this.#deployments.delete(uid);
    this.#commits.delete(uid);
  }

  replicaSet(object: ReplicaSet, isBlind: boolean): void {
    const { uid } = object.metadata;
    const before = this.#replicaSets.get(uid);
    this.#replicaSets.set(uid, object);
    const owner = object.metadata.ownerReferences?.find(({ kind }) => kind === "Deployment")?.uid;
    if (owner === undefined) return;
    this.#owners.set(uid, owner);
    const deployment = this.#deployments.get(owner);
    if (!deployment || isBlind) return;
    const commit = this.#commits.get(owner);
    const isOther = commit?.replicaSet !== undefined && commit.replicaSet !== uid;
    if (isOther && (object.spec.replicas ?? 1) > 0 && !(before && hasPods(before)))
      this.#context.fault(
        object,
        `it got the pods of ${deployment.metadata.name}, which was resized in place without a restart`,
      );
    if (before) this.#changed("ReplicaSet", before, object, deployment);
    if (before && isSizedByUs(before, object, pipeContainer(deployment)))
      this.#sizedReplicaSet(object, deployment);
  }

  #sizedReplicaSet(object: ReplicaSet, deployment: Deployment): void {
    const { uid } = deployment.metadata;
    const container = pipeContainer(deployment);
    const size = sizeIn(object, container) ?? "";
    if (this.#commits.get(uid)?.sizes.has(size)) return;
    // Another writer can change the size of a paused Deployment. Then the ReplicaSet follows it, so that no pod restarts.
    if (isPausedByUs(deployment) && sizeIn(deployment, container) === size) return;
    // If a pod does not get the size after all, a rollout begins when the ReplicaSet is as before the commit.
    this.#commits.delete(uid);
    const isTakenBack = this.#podsOf(uid).some((pod) => runningSize(pod.object, container) === size);
    if (!isTakenBack)
      this.#context.fault(
        object,
        `the controller applied ${size}, which neither its Deployment nor its pods had`,
      );
  }

  goneReplicaSet(object: ReplicaSet): void {
    const known = this.#replicaSets.get(object.metadata.uid);
    this.#replicaSets.delete(object.metadata.uid);
    const deployment = this.#deployments.get(this.#owners.get(object.metadata.uid) ?? "");
    const isAlive = deployment && deployment.metadata.deletionTimestamp === undefined;
    if (known && isAlive && hasPods(known))
      this.#context.fault(object, "it was deleted although it has pods");
  }

  pod(object: Pod, isBlind: boolean): void {
    const { uid } = object.metadata;
    const before = this.#pods.get(uid);
    const owner = this.#ownerOf(object);
    const deployment = this.#deployments.get(owner ?? "");
    if (!before || isBlind || !deployment) {
      this.#pods.set(uid, { writes: 0, requests: 0, ...before, object });
      return;
    }
    const isOurs = this.#changed("Pod", before.object, object, deployment);
    this.#pods.set(uid, { ...before, object });
    if (isOurs) this.#resized(before, object, deployment);
    if (before.given !== undefined && hasRestarted(before.object, object))
      this.#context.fault(object, "a container restarted after the controller resized the pod in place");
    this.#note(deployment.metadata.uid);
  }

  gonePod(object: Pod): void {
    this.#pods.delete(object.metadata.uid);
    this.#note(this.#ownerOf(object) ?? "");
  }

  /** Checks a change of a pod or ReplicaSet. Returns true if the controller made it. */
  #changed(kind: Kind, before: SizedObject, after: SizedObject, deployment: Deployment): boolean {
    const ownedBefore = ownedBeyond(before);
    for (const leaf of ownedBeyond(after).filter((each) => !ownedBefore.includes(each)))
      this.#context.fault(after, `the controller became the owner of ${leaf}`);
    const container = pipeContainer(deployment);
    if (!isSizedByUs(before, after, container)) return false;
    this.#context.wrote(kind, after);
    if (!this.#context.pipeOf(deployment.metadata.uid))
      this.#context.fault(after, "the controller changed it, but it does not belong to a pipe");
    if (!isSameBesideOurs(before, after, container))
      this.#context.fault(after, "the controller changed more of it than the size of its pipe container");
    return true;
  }

  #resized(before: PodRecord, after: Pod, deployment: Deployment): void {
    const judged = this.#context.pipeOf(deployment.metadata.uid);
    const size = sizeIn(after, pipeContainer(deployment));
    if (!judged || size === undefined) return;
    const { pipe, service } = judged;
    const writes = service.requests === before.requests ? before.writes + 1 : 1;
    this.#pods.set(after.metadata.uid, {
      ...{ object: after, given: size, writes, requests: service.requests },
    });
    if (writes === MOST_WRITES + 1)
      this.#context.fault(after, `the controller resized it more than ${MOST_WRITES} times for one request`);
    if (size === pipe.size) return;
    if (runningSize(after, pipeContainer(deployment)) === size) return;
    if (service.placeOf(size, pipe.newestGiven) === -1)
      this.#context.fault(
        after,
        `the controller applied ${size}, which is neither requested nor its old size`,
      );
    this.#checkPods(after, deployment, size);
    const isFirst = pipe.resizingTo !== size;
    pipe.resizingTo = size;
    if (isFirst) this.#context.pace(judged, size);
  }

  /** Checks that one pod is resized first, and then a limited number at a time. */
  #checkPods(after: Pod, deployment: Deployment, size: string): void {
    const container = pipeContainer(deployment);
    const others = this.#podsOf(deployment.metadata.uid)
      .map(({ object }) => object)
      .filter(({ metadata }) => metadata.uid !== after.metadata.uid)
      .filter((each) => sizeIn(each, container) === size);
    const unfinished = others.filter((each) => !isResized(each, container));
    if (unfinished.length >= MOST_PODS)
      this.#context.fault(
        after,
        `more than ${MOST_PODS} pods of ${deployment.metadata.name} are resized at once`,
      );
    if (unfinished.length > 0 && unfinished.length === others.length)
      this.#context.fault(after, `no pod of ${deployment.metadata.name} has proven ${size} yet`);
  }

  /** Updates `resizingTo`: a resize in place ends when the template has the size of the pods. */
  #note(deploymentUid: string): void {
    const pipe = this.#context.pipeOf(deploymentUid)?.pipe;
    if (!pipe || pipe.resizingTo === undefined) return;
    const isAhead = this.#podsOf(deploymentUid).some(
      ({ object, given }) =>
        given === pipe.resizingTo && sizeIn(object, pipeContainer(pipe.object)) === given,
    );
    if (!isAhead || pipe.size === pipe.resizingTo) pipe.resizingTo = undefined;
  }

  /** Call it at the end of a history. */
  end(atMs: number): void {
    for (const deployment of this.#deployments.values()) {
      const commit = this.#commits.get(deployment.metadata.uid);
      if (commit && isPausedByUs(deployment)) this.#checkPause(commit, deployment, atMs);
    }
  }

  #podsOf(deploymentUid: string): PodRecord[] {
    return [...this.#pods.values()].filter(
      ({ object }) =>
        object.metadata.deletionTimestamp === undefined && this.#ownerOf(object) === deploymentUid,
    );
  }

  #replicaSetsOf(deploymentUid: string): ReplicaSet[] {
    return [...this.#replicaSets.values()].filter(
      ({ metadata }) => this.#owners.get(metadata.uid) === deploymentUid,
    );
  }

  #ownerOf({ metadata }: Pod): string | undefined {
    return this.#owners.get(metadata.ownerReferences?.find(({ kind }) => kind === "ReplicaSet")?.uid ?? "");
  }
}
