import type { FailureReason } from "../crd/reasons.ts";
import type { PipeState, RolloutPhase } from "../domain/rollout-plan.ts";
import type { Size } from "../domain/size.ts";
import type { RolloutPolicy } from "../settings/rollout-policy.ts";
import type { Action, InPlaceAction } from "./actions.ts";
import type { EndedPod } from "./observe/deleted-objects.ts";
import type { Fallback, OutOfMemory } from "./observe/last-rollout.ts";
import type { PipeScalingView } from "./observe/pipe-scaling-view.ts";
import type { PipeView } from "./observe/pipe-view.ts";
import type { ContainerView, PodView } from "./observe/pod-view.ts";
import type { Resources } from "./observe/resources.ts";
import type { Snapshot } from "./observe/snapshot.ts";
import type { WriteRecord } from "./observe/write-record.ts";

/** The reason why a pipe cannot have the desired size: one word for programs, and the end of a sentence for people. */
export interface Cause {
  readonly reason: FailureReason;
  readonly message: string;
}

/** A failure to give a pipe the desired size. Times are in milliseconds since 1970. */
export interface Failure extends Cause {
  /** Number of attempts with this size. */
  readonly attempts: number;
  readonly atMs: number;
  /** The object changed between a read and the write. */
  readonly isConflict?: boolean | undefined;
  /** Absent if there is no automatic retry. */
  readonly retryAtMs?: number;
  /** The next attempt is in flight, or waits for its turn. Until it ends, it is no news. */
  readonly isRepeated?: boolean;
}

/** The input of rules besides the pipe. */
export interface PipeContext extends Omit<Snapshot, "pods" | "endedPods" | "scaling"> {
  /** The size that the pipes get: the requested one, or a larger one if containers ran out of memory with it. */
  readonly desired: Size;
  /** The requested size that the service has given back. */
  readonly outOfMemory: OutOfMemory | undefined;
  /** Annotations keep this: the same, and also during a boost, after which that size is the requested one again. */
  readonly keptOutOfMemory: OutOfMemory | undefined;
  readonly requestId: string | undefined;
  readonly scaling: PipeScalingView;
  readonly policy: RolloutPolicy;
}

/** The state of a pod relative to the target resources of its pipe container. */
export type PodState =
  /** The spec of the pod does not have them. */
  | "unchanged"
  /** The kubelet has not finished, or not seen the change yet. */
  | "resizing"
  /** No room on the node at present. */
  | "deferred"
  /** Never possible on this node. */
  | "infeasible"
  /** The kubelet tries again, for example until memory usage falls. */
  | "error"
  | "done";

export interface ActivePod {
  readonly pod: PodView;
  /** The container to resize. */
  readonly own: ContainerView | undefined;
  readonly state: PodState;
  /** The last write of this process that gave it the desired size, unless it failed and a retry starts over. */
  readonly record: WriteRecord | undefined;
}

/** A pipe, with what its rules decide by. */
export interface Subject extends PipeContext {
  readonly pipe: PipeView;
  /** Name of the container to resize; empty if it is unclear, and then no rule gets to it. */
  readonly container: string;
  /** All of its pods that the controller sees. */
  readonly pods: readonly PodView[];
  /** Those of them that have to have the size: not those that end. */
  readonly active: readonly ActivePod[];
  /** The pod of the pipe that was last seen to end. */
  readonly endedPod: EndedPod | undefined;
  /** Resources of its container at the desired size. */
  readonly target: Resources;
}

export interface DryRun {
  readonly isAccepted: boolean;
  /** Absent if it is accepted, in flight, or repeated later. */
  readonly action?: Extract<Action, { readonly type: "dry-run" | "check-room" }>;
}

/** Why a pipe cannot be resized in a way. `untilMs`: until then, it may end by itself. */
export type Problem = Fallback & { readonly untilMs?: number };

/** The next step for the pods of a pipe whose resize in place has begun or may begin. */
export type PodsStep =
  /** Without actions if every pod has the size. `failure`: why pods that had the size are resized again. */
  | {
      readonly type: "resize";
      readonly actions: readonly InPlaceAction[];
      readonly failure?: Failure | undefined;
    }
  /**
   * `untilMs`: when it fails, or the failed write is repeated, unless something happens; in milliseconds since 1970.
   * `hindrance`: why the writes so far have failed, if the strategy replaces no pods.
   */
  | {
      readonly type: "wait";
      readonly untilMs: number;
      readonly failure?: Failure | undefined;
      readonly hindrance?: Fallback;
    }
  /** Another writer resized pods, and they are not resized back: the attempts are used up, or the pods cannot be resized now. */
  | { readonly type: "conflict"; readonly failure: Failure }
  /** The kubelet defers a resize, and the rollout would stop old pods first. `message`: why it waits, for people. */
  | {
      readonly type: "defer";
      readonly message: string;
      /** When room is searched for again, or the wait becomes a failure; in milliseconds since 1970. */
      readonly untilMs: number;
      readonly actions: readonly Action[];
      /** Present if the resize has waited for as long as a rollout may take. */
      readonly failure: Failure | undefined;
    }
  | Failed;

export type Failed = { readonly type: "fail" } & Problem;

/** One way to resize a pipe. */
export interface Way {
  /** True if it replaces pods. Only that counts against the limit across all services. */
  readonly replacesPods: boolean;
  /** Absent if it is always possible. */
  problem?(subject: Subject): Problem | undefined;
  /** The dry run that must be accepted before the first pod changes. */
  dryRun(begin: Begin): DryRun;
  /** The first writes; empty while something has to end first. */
  begin(begin: Begin): readonly Action[];
}

/** A pipe whose resize begins, and its place among the pipes of its service. */
export interface Begin {
  readonly subject: Subject;
  /** Number of this attempt. */
  readonly attempts: number;
  /** Why the pipe is not resized in a better way. */
  readonly fallback: Fallback | undefined;
  /** No pipe of the service has proven the size, and others wait for this one. */
  readonly isCanaryOfSeveral: boolean;
  /** Nothing else keeps the pipe from its resize. */
  readonly isNext: boolean;
  /** People asked for this attempt. */
  readonly isRequested: boolean;
  /** A rollout of the controller is replacing its pods. */
  readonly isRollingOut: boolean;
}

/** The next step of a pipe. */
export type Next =
  /** The resize begins when the turn of the pipe comes (decide/passes.ts). */
  | ({ readonly type: "begin"; readonly way: Way } & Pick<Begin, "attempts" | "fallback" | "isRequested">)
  /** Writes that go on with what has begun, so they wait for nothing. */
  | { readonly type: "continue"; readonly actions: readonly Action[] }
  /** The write by which its template begins to follow its pods. It waits for a place in the line of commits. */
  | { readonly type: "commit"; readonly action: Action };

/** The result of a rule for a pipe. */
export interface PipeDecision {
  readonly state: PipeState;
  /** The phase of its rollout, if it is not the one that its workload shows. */
  readonly phase?: RolloutPhase;
  readonly failure?: Failure | undefined;
  /** The current step of the pipe, for people: the end of a sentence that begins with its name. */
  readonly activity?: string;
  /** Why the pipe cannot be resized in place, if its strategy replaces no pods. It waits until that ends. */
  readonly hindrance?: Fallback;
  /** Only its owner can go on, and has chosen so. */
  readonly waitsForOwner?: boolean;
  /** The reason why the rollout makes no progress, if known. */
  readonly obstacle?: string | undefined;
  /** Absent if something has to happen first. */
  readonly next?: Next;
  /** Time at which this decision may change without an event and without a retry, in milliseconds since 1970. */
  readonly recheckAtMs?: number | undefined;
}

/** The state of one pipe relative to the desired size. */
export interface Assessment extends PipeDecision {
  readonly subject: Subject;
  readonly pipe: PipeView;
  readonly phase: RolloutPhase;
  /** When a phase with moving pods times out, in milliseconds since 1970. */
  readonly phaseEndsAtMs?: number | undefined;
  /** Shows whether the size works. */
  readonly proof: "none" | "proving" | "proven";
  /** The failure of a rollout to a size that is no longer desired. It is rolled back unless the pipe is resized now. */
  readonly abandoned?: Cause | undefined;
  /** Information for people that does not affect the decision. */
  readonly remark?: string | undefined;
}
