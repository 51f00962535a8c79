import type { Kinds } from "./history.ts";
import { IN_FLIGHT_MS, type JudgeContext } from "./judge-context.ts";
import { isPausedForCommit, isResumedByUs, mayBePausedForCommit, pipeContainer } from "./pipe-view.ts";
import { hasPods, runningSize } from "./pod-view.ts";
import { isSameBesideOurs, isSizedByUs, ownedBeyond, type SizedObject, sizeIn } from "./sized-object.ts";
import type { Workloads } from "./workloads.ts";

type Deployment = Kinds["Deployment"];
type ReplicaSet = Kinds["ReplicaSet"];

/** The commit of a Deployment, which the controller paused to give its template the size of its pods. */
interface Commit {
  readonly pausedAtMs: number;
  /** The size of the template before. */
  readonly original: string | undefined;
  /** Sizes of the template since then. */
  readonly sizes: Set<string>;
  readonly template: string;
  /** The ReplicaSet that keeps its pods, if there was exactly one. */
  readonly replicaSet: string | undefined;
}

/** 15 s until another leader can take over, and 30 s for it to resume the Deployment. */
const MOST_PAUSED_MS = 45_000;
/** Maximum number of commits in progress, of all services. */
const MOST_COMMITS = 6;

/** Checks how templates follow pods that were resized in place: the pauses, and the writes to ReplicaSets. */
export class CommitJudge {
  readonly #context: JudgeContext;
  readonly #workloads: Workloads;
  /** Commits by UID of the Deployment. */
  readonly #commits = new Map<string, Commit>();
  /** Sizes of the last commit that another writer ended, by UID: a write may have been in flight. */
  readonly #ended = new Map<string, { readonly sizes: ReadonlySet<string>; readonly atMs: number }>();

  constructor(context: JudgeContext, workloads: Workloads) {
    this.#context = context;
    this.#workloads = workloads;
  }

  /** True if one write restores the template that the ReplicaSet still has, and resumes: the pods keep their size. */
  isUndone(before: Deployment, after: Deployment): boolean {
    const commit = this.#commits.get(after.metadata.uid);
    const replicaSet = this.#workloads.replicaSets.get(commit?.replicaSet ?? "");
    if (!commit || !replicaSet || !isPausedForCommit(before) || after.spec.paused) return false;
    const container = pipeContainer(after);
    const size = sizeIn(after, container);
    return size === commit.original && size === sizeIn(replicaSet, container);
  }

  deployment(before: Deployment, after: Deployment, atMs: number): void {
    const commit = this.#commits.get(after.metadata.uid);
    if (isPausedForCommit(after) && !before.spec.paused) {
      this.#paused(before, after, atMs);
    } else if (commit) {
      this.#continued(commit, before, after, atMs);
    }
    if (isResumedByUs(before, after) && !mayBePausedForCommit(before))
      this.#context.fault(after, "the controller resumed it, although another writer had paused it");
  }

  /** Versions between the two may be missing, so only the begin and the end of a commit count. */
  unseenDeployment(before: Deployment, after: Deployment, atMs: number): void {
    const commit = this.#commits.get(after.metadata.uid);
    if (isPausedForCommit(after) && !before.spec.paused) this.#begin(before, after, atMs);
    else if (commit) this.#endIfChanged(commit, before, after, atMs);
  }

  #paused(before: Deployment, after: Deployment, atMs: number): void {
    if (sizeIn(after, pipeContainer(before)) === sizeIn(before, pipeContainer(before)))
      this.#context.fault(after, "the controller paused it without a new size");
    this.#begin(before, after, atMs);
    const paused = [...this.#commits.keys()].filter((each) => {
      const deployment = this.#workloads.deployments.get(each);
      return deployment && isPausedForCommit(deployment);
    });
    if (paused.length > MOST_COMMITS)
      this.#context.fault(after, `the controller has paused ${paused.length} Deployments at once`);
  }

  #begin(before: Deployment, after: Deployment, atMs: number): void {
    const { uid } = after.metadata;
    const size = sizeIn(after, pipeContainer(before));
    const original = sizeIn(before, pipeContainer(before));
    const inUse = this.#workloads.replicaSetsOf(uid).filter(hasPods);
    this.#commits.set(uid, {
      pausedAtMs: atMs,
      original,
      sizes: new Set(size === undefined ? [] : [size]),
      template: JSON.stringify(after.spec.template),
      replicaSet: inUse.length === 1 ? inUse[0]?.metadata.uid : undefined,
    });
  }

  #continued(commit: Commit, before: Deployment, after: Deployment, atMs: number): void {
    const size = sizeIn(after, pipeContainer(after));
    if (size !== undefined) commit.sizes.add(size);
    if (isPausedForCommit(before)) this.#checkPause(commit, after, atMs);
    this.#endIfChanged(commit, before, after, atMs);
  }

  #endIfChanged(commit: Commit, before: Deployment, after: Deployment, atMs: number): void {
    const { uid } = after.metadata;
    const isChanged = JSON.stringify(after.spec.template) !== commit.template;
    const isResumedByOthers = before.spec.paused && !after.spec.paused && !isResumedByUs(before, after);
    // Now its owner is responsible for the pods.
    if (!isChanged && !isResumedByOthers) return;
    this.#commits.delete(uid);
    this.#ended.set(uid, { sizes: commit.sizes, atMs });
  }

  #checkPause({ pausedAtMs }: Commit, after: Deployment, atMs: number): void {
    const pausedMs = Math.round(atMs - pausedAtMs);
    if (pausedMs > MOST_PAUSED_MS)
      this.#context.fault(after, `the controller left it paused for ${pausedMs} ms`);
  }

  goneDeployment({ metadata: { uid } }: Deployment): void {
    this.#commits.delete(uid);
  }

  replicaSet(object: ReplicaSet, isBlind: boolean, atMs: number): void {
    const { uid } = object.metadata;
    const before = this.#workloads.replicaSets.get(uid);
    const owner = this.#workloads.setReplicaSet(object) ?? "";
    const deployment = this.#workloads.deployments.get(owner);
    if (!deployment || isBlind) return;
    const commit = this.#commits.get(owner);
    const isOther = commit?.replicaSet !== undefined && commit.replicaSet !== uid;
    if (isOther && (object.spec.replicas ?? 1) > 0 && !(before && hasPods(before)))
      this.#context.fault(
        object,
        `it got the pods of ${deployment.metadata.name}, which was resized in place without a restart`,
      );
    if (!before) return;
    const isCommit = commit !== undefined || this.#context.serviceFor(deployment) !== undefined;
    if (!checkSizing(this.#context, "ReplicaSet", { before, after: object, deployment })) return;
    if (!isCommit) this.#context.fault(object, "the controller changed it, but it does not belong to a pipe");
    this.#sized(object, deployment, atMs);
  }

  #sized(object: ReplicaSet, deployment: Deployment, atMs: number): void {
    const { uid } = deployment.metadata;
    const container = pipeContainer(deployment);
    const size = sizeIn(object, container) ?? "";
    if (this.#commits.get(uid)?.sizes.has(size)) return;
    const ended = this.#ended.get(uid);
    if (ended?.sizes.has(size) && atMs - ended.atMs <= IN_FLIGHT_MS) return;
    // Another writer can change the size of a paused Deployment. Then the ReplicaSet follows it, so that no pod restarts.
    if (mayBePausedForCommit(deployment) && sizeIn(deployment, container) === size) return;
    // If a pod does not get the size after all, a rollout begins when the ReplicaSet is as before the commit.
    this.#commits.delete(uid);
    const service = this.#context.serviceFor(deployment);
    // A pod whose resize to an earlier request hangs may be replaced too.
    const isSuperseded = service?.placeOf(size, service.requests - 1) === -1;
    const isStale = ({ object: pod }: { readonly object: Kinds["Pod"] }) =>
      runningSize(pod, container) === size || (isSuperseded && sizeIn(pod, container) === size);
    if (!this.#workloads.podsOf(uid).some(isStale))
      this.#context.fault(
        object,
        `the controller applied ${size}, which neither its Deployment nor its pods had`,
      );
  }

  goneReplicaSet(object: ReplicaSet): void {
    const { uid } = object.metadata;
    const known = this.#workloads.replicaSets.get(uid);
    this.#workloads.replicaSets.delete(uid);
    const deployment = this.#workloads.deployments.get(this.#workloads.ownerOf(uid) ?? "");
    const isAlive = deployment && deployment.metadata.deletionTimestamp === undefined;
    if (known && isAlive && hasPods(known))
      this.#context.fault(object, "it was deleted although it has pods");
  }

  /** Call it at the end of a history. */
  end(atMs: number): void {
    for (const [uid, commit] of this.#commits) {
      const deployment = this.#workloads.deployments.get(uid);
      if (deployment && isPausedForCommit(deployment)) this.#checkPause(commit, deployment, atMs);
    }
  }
}

interface Change<T> {
  readonly before: T;
  readonly after: T;
  readonly deployment: Deployment;
}

/** Checks a change of a pod or ReplicaSet. Returns true if the controller gave it a size. */
export function checkSizing<T extends SizedObject>(
  context: JudgeContext,
  kind: "Pod" | "ReplicaSet",
  { before, after, deployment }: Change<T>,
): boolean {
  const ownedBefore = ownedBeyond(before);
  for (const leaf of ownedBeyond(after).filter((each) => !ownedBefore.includes(each)))
    context.fault(after, `the controller became the owner of ${leaf}`);
  const container = pipeContainer(deployment);
  if (!isSizedByUs(before, after, container)) return false;
  context.wrote(kind, after);
  if (!isSameBesideOurs(before, after, container))
    context.fault(after, "the controller changed more of it than the size of its pipe container");
  return true;
}
