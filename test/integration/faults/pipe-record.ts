import type { Kinds } from "./history.ts";
import { isPausedForCommit, isRolledOut, pipeContainer, replicasOf, saysRolledOut } from "./pipe-view.ts";
import { sizeIn } from "./sized-object.ts";

type Deployment = Kinds["Deployment"];

/** The state of one pipe, derived from all observed versions of its Deployment. */
export class PipeRecord {
  /** The newest version. */
  object: Deployment;
  /** A rollout to its size has completed. Later changes of its pods do not matter. */
  isDone = false;
  /** The last size whose rollout has completed. */
  completedSize: string | undefined;
  /** A later size that the controller superseded, which a pod was ready with or the owner had set. */
  supersededSize: string | undefined;
  /** Versions are missing, or there was no pod, so the pipe may only seem to have completed it. */
  isAssumed = false;
  /** The controller applied a size, or rolled back to one, that not all pods have yet. */
  holdsSlot = false;
  /** The controller applied the size during a pause of another writer, who has begun the rollout by resuming it. */
  isBegunByOthers = false;
  /** The size that its pods get in place, while its template still has another one. */
  resizingTo: string | undefined;
  /** The size that all its pods run, if they have the same. */
  podsRun: string | undefined;
  /** A pod was ready with the size of the template. */
  isReadyOnce = false;
  #isOfOthers = true;
  /** Index of the request whose size the controller applied last; -1 for none. */
  newestGiven = -1;
  /** The last resize by the controller was a rollback. */
  isRolledBack = false;
  /** Writes of the controller since the last request. */
  writes = 0;
  /** The first size of the pipe, and the sizes that other writers applied. */
  readonly sizesOfOthers = new Set<string>();

  constructor(object: Deployment, isBlind: boolean) {
    this.object = object;
    if (this.size !== undefined) this.sizesOfOthers.add(this.size);
    this.#look(isBlind);
  }

  get name(): string {
    return this.object.metadata.name;
  }

  get size(): string | undefined {
    return sizeIn(this.object, pipeContainer(this.object));
  }

  /** The pipe has pods that a rollout restarts. */
  get isRunning(): boolean {
    return replicasOf(this.object) > 0;
  }

  get isRolling(): boolean {
    return this.holdsSlot && this.isRunning && !this.object.spec.paused;
  }

  /** Moves to the next version, after the judge has checked it. */
  become(object: Deployment, giver: "us" | "others", isBlind: boolean): void {
    const sizeBefore = this.size;
    const isOthersPause = this.object.spec.paused === true && !isPausedForCommit(this.object);
    if (isOthersPause && !object.spec.paused) this.isBegunByOthers = true;
    this.object = object;
    if (this.size !== sizeBefore) {
      if (this.isReadyOnce || this.#isOfOthers) this.supersededSize = sizeBefore;
      this.isReadyOnce = false;
      this.#isOfOthers = giver === "others";
      this.isBegunByOthers = false;
      this.isDone = false;
      this.holdsSlot = giver === "us";
      // The pods follow the template as soon as the owner resumes the Deployment.
      if (giver === "us") this.resizingTo = undefined;
      if (giver === "others" && this.size !== undefined) this.sizesOfOthers.add(this.size);
    }
    this.#look(isBlind);
  }

  /** @param isBlind versions are missing, in which the rollout may have been complete */
  #look(isBlind: boolean): void {
    const { object } = this;
    const isSeen = isRolledOut(object);
    if (isSeen || (isBlind && saysRolledOut(object))) {
      // Without a pod, a complete rollout does not show that the size works.
      const isProven = isSeen && this.isRunning;
      if (isProven) this.supersededSize = undefined;
      // If it did not complete, the earlier size is the last good one.
      else if (!this.isDone) this.supersededSize = this.completedSize;
      if (isProven || !this.isDone || !isSeen) this.isAssumed = !isProven;
      this.isDone = true;
      this.completedSize = this.size;
    }
    if (this.isDone && (object.status?.terminatingReplicas ?? 0) === 0) this.holdsSlot = false;
  }
}
