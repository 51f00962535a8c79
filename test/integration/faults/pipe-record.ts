import type { Kinds } from "./history.ts";
import { isRolledOut, pipeContainer, replicasOf, saysRolledOut } from "./pipe-view.ts";
import { sizeIn } from "./sized-object.ts";

type Deployment = Kinds["Deployment"];

/** The state of one pipe, derived from all observed versions of its Deployment. */
export class PipeRecord {
  /** The newest version. */
  object: Deployment;
  /** Runs its size by a rollout that was complete; what becomes of the pods later does not undo it. */
  isDone = false;
  /** The last size that it was done at. */
  completedSize: string | undefined;
  /** We gave it a size that is still on its way to its pods. */
  holdsSlot = false;
  /** The size that its pods get in place; its template has another one yet. */
  resizingTo: string | undefined;
  /** The place, among those that were accepted, of the newest size that we gave it. */
  newestGiven = -1;
  /** The last that we did to it was to put it back. */
  isPutBack = false;
  /** Writes of the controller since the last request. */
  writes = 0;
  /** Sizes that it was made with, or that others gave it. */
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

  /** Has pods that a rollout restarts. */
  get isRunning(): boolean {
    return replicasOf(this.object) > 0;
  }

  get isRolling(): boolean {
    return this.holdsSlot && this.isRunning && !this.object.spec.paused;
  }

  /** The next version, after it was judged. */
  become(object: Deployment, giver: "us" | "others", isBlind: boolean): void {
    const sizeBefore = this.size;
    this.object = object;
    if (this.size !== sizeBefore) {
      this.isDone = false;
      this.holdsSlot = giver === "us" && !this.isPutBack;
      if (giver === "others" && this.size !== undefined) this.sizesOfOthers.add(this.size);
    }
    this.#look(isBlind);
  }

  /** @param isBlind not every version was seen: one in which it was complete may be among them */
  #look(isBlind: boolean): void {
    const { object } = this;
    if (isRolledOut(object) || (isBlind && saysRolledOut(object))) {
      this.isDone = true;
      this.completedSize = this.size;
    }
    if (this.isDone && (object.status?.terminatingReplicas ?? 0) === 0) this.holdsSlot = false;
  }
}
