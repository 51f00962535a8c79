import type { CommitJudge } from "./commit-judge.ts";
import type { Kinds } from "./history.ts";
import { IN_FLIGHT_MS, type JudgeContext, type JudgedPipe, type Moment } from "./judge-context.ts";
import { PipeRecord } from "./pipe-record.ts";
import { isOurWrite, isPausedForCommit, pipeContainer } from "./pipe-view.ts";
import type { ServiceRecord } from "./service-record.ts";
import { isSameBesideOurs, isSizedByUs, ownedBeyond, sizeIn } from "./sized-object.ts";
import type { Workloads } from "./workloads.ts";

type Deployment = Kinds["Deployment"];

/** Maximum number of writes of the controller to one Deployment for one request, whatever other writers do. */
const MOST_WRITES = 20;

/** The service that a Deployment belonged to before its labels changed. */
interface Former {
  readonly service: ServiceRecord;
  readonly untilMs: number;
}

/** Checks the writes of the controller to Deployments: the sizes, the limits, and which objects. */
export class PipeJudge {
  readonly #context: JudgeContext;
  readonly #workloads: Workloads;
  readonly #commits: CommitJudge;
  readonly #knownSets = new Set<string>();
  readonly #former = new Map<string, Former>();

  constructor(context: JudgeContext, workloads: Workloads, commits: CommitJudge) {
    this.#context = context;
    this.#workloads = workloads;
    this.#commits = commits;
  }

  /** Returns the pipe of a Deployment, if its service is observed. */
  pipeOf(deploymentUid: string): JudgedPipe | undefined {
    const object = this.#workloads.deployments.get(deploymentUid);
    const service = object && this.#context.serviceFor(object);
    const pipe = service?.pipes.get(deploymentUid);
    return service && pipe && { pipe, service };
  }

  /** True if a pipe that ran out of memory had the size before, so that its service returns to it. */
  isReturn(service: ServiceRecord, size: string): boolean {
    return service.living.some(
      ({ object, sizesOfOthers, completedSize }) =>
        (sizesOfOthers.has(size) || completedSize === size) &&
        this.#workloads.ranOutOfMemory(object.metadata.uid),
    );
  }

  /** The service that the Deployment left a moment ago: a write for that service may have been in flight. */
  formerServiceOf(deploymentUid: string, atMs: number): ServiceRecord | undefined {
    const former = this.#former.get(deploymentUid);
    return former && atMs - former.untilMs <= IN_FLIGHT_MS ? former.service : undefined;
  }

  deployment(before: Deployment | undefined, object: Deployment, isBlind: boolean, moment: Moment): void {
    const { uid } = object.metadata;
    const was = before && this.#context.serviceFor(before);
    const is = this.#context.serviceFor(object);
    const isOurs = before !== undefined && isOurWrite(before, object);
    if (isOurs) this.#ourWrite(before, object, was, isBlind);
    const pipe = was === is ? is?.pipes.get(uid) : undefined;
    if (pipe && before) {
      const isSized = isSizedByUs(before, object, pipeContainer(before));
      const isUndone = this.#commits.isUndone(before, object);
      pipe.become(object, isSized ? "us" : "others", isBlind);
      // The pods have the size already, or keep the one that they have.
      if (isSized && (isUndone || isPausedForCommit(object))) pipe.holdsSlot = false;
      const isResized = pipe.size !== sizeIn(before, pipeContainer(before));
      if (is && isOurs && !isBlind && isResized && pipe.isRolling && !pipe.isRolledBack)
        this.#pace(pipe, is, pipe.size);
    } else {
      if (was) this.#former.set(uid, { service: was, untilMs: moment.atMs });
      was?.pipes.delete(uid);
      is?.pipes.set(uid, new PipeRecord(object, isBlind));
    }
    for (const service of new Set([was, is])) service?.note(moment.version);
  }

  gone(object: Deployment, version: bigint): void {
    for (const service of this.#context.services.values()) {
      if (service.pipes.delete(object.metadata.uid)) service.note(version);
    }
  }

  #ourWrite(
    before: Deployment,
    after: Deployment,
    service: ServiceRecord | undefined,
    isBlind: boolean,
  ): void {
    this.#context.wrote("Deployment", after);
    const pipe = service?.pipes.get(after.metadata.uid);
    if (!service || !pipe) {
      // A commit is finished even if the Deployment has lost its labels meanwhile.
      if (!isPausedForCommit(before))
        this.#context.fault(after, "the controller changed it, but it is not a pipe of an observed service");
      return;
    }
    if (!isBlind && !isSameBesideOurs(before, after, pipeContainer(before)))
      this.#context.fault(after, "the controller changed more of it than the size of its pipe container");
    pipe.writes += 1;
    if (pipe.writes === MOST_WRITES + 1)
      this.#context.fault(after, `the controller wrote it more than ${MOST_WRITES} times for one request`);
    const ownedBefore = ownedBeyond(before);
    for (const leaf of ownedBeyond(after).filter((each) => !ownedBefore.includes(each)))
      this.#context.fault(after, `the controller became the owner of ${leaf}`);
    const size = sizeIn(after, pipeContainer(before));
    if (size === pipe.size || size === undefined) return;
    // The size before the commit, also if the pipe has moved since it began.
    if (this.#commits.isUndone(before, after) || this.isReturn(service, size)) return;
    this.#given(pipe, service, size, after);
  }

  /** Checks a size that the controller applied: an accepted one, or once the last size that the pipe or one of its pods ran. */
  #given(pipe: PipeRecord, service: ServiceRecord, size: string, after: Deployment): void {
    const place = service.placeOf(size, pipe.newestGiven);
    if (place !== -1) {
      pipe.newestGiven = place;
      pipe.isRolledBack = false;
      return;
    }
    const isTakenBack = pipe.isAssumed && pipe.sizesOfOthers.has(size);
    const isGood = size === pipe.completedSize || size === pipe.supersededSize;
    const isFormer = (isGood && (!pipe.isDone || pipe.isAssumed)) || isTakenBack;
    const isRollback = isFormer && !pipe.isRolledBack;
    if (!isRollback) {
      this.#context.fault(
        after,
        service.placeOf(size) === -1
          ? `the controller applied ${size}, which was never requested`
          : `the controller replaced ${pipe.size} by the older request ${size}, which is not the one allowed rollback to ${pipe.completedSize}`,
      );
    }
    pipe.isRolledBack = true;
  }

  /** Checks the limits after a rollout began, with those that are in progress then. */
  #pace(pipe: PipeRecord, service: ServiceRecord, size = ""): void {
    const { rolling } = service;
    const limit = Math.max(3, Math.ceil(service.living.length / 4));
    if (rolling.length > limit)
      this.#context.fault(
        pipe.object,
        `${rolling.length} pipes roll out at once (${namesOf(rolling)}), more than ${limit}`,
      );
    this.checkCanary(pipe, service, size);
    const overall = [...this.#context.services.values()].flatMap((each) => each.rolling).length;
    if (overall > this.#context.maxConcurrentRollouts)
      this.#context.fault(pipe.object, `${overall} pipes of all services roll out at once`);
  }

  /** Checks that one pipe proves a size before others get it, by a rollout or in place. */
  checkCanary(pipe: PipeRecord, service: ServiceRecord, size: string): void {
    const unproven = service.unproven(size);
    if (unproven.length > 1 && !service.isProven(size))
      this.#context.fault(
        pipe.object,
        `no pipe has proven ${size} yet, but ${namesOf(unproven)} roll it out at once`,
      );
  }

  /** Checks the size of a new ReplicaSet. */
  replicaSet(object: Kinds["ReplicaSet"], version: bigint, isInitial: boolean): void {
    const { uid, ownerReferences = [] } = object.metadata;
    if (this.#knownSets.has(uid)) return;
    this.#knownSets.add(uid);
    if (isInitial || this.#context.isUnseen("Deployment", version)) return;
    const owner = this.#workloads.deployments.get(ownerReferences[0]?.uid ?? "");
    const judged = owner && this.pipeOf(owner.metadata.uid);
    const size = owner && sizeIn(object, pipeContainer(owner));
    if (!judged || size === undefined) return;
    const { pipe, service } = judged;
    if (service.placeOf(size) === -1 && !pipe.sizesOfOthers.has(size))
      this.#context.fault(
        object,
        `a ReplicaSet of ${pipe.name} was created with ${size}, which was never requested`,
      );
  }
}

function namesOf(pipes: readonly PipeRecord[]): string {
  return pipes.map((each) => each.name).join(", ");
}
