import type { FailureReason } from "../crd/reasons.ts";
import type { PipeState, RolloutPhase } from "../domain/rollout-plan.ts";
import type { Size } from "../domain/size.ts";
import type { RolloutPolicy } from "../settings/rollout-policy.ts";
import type { Action, InPlaceAction, Of } from "./actions.ts";
import type { EndedPod } from "./observe/deleted-objects.ts";
import type { Fallback, OutOfMemory } from "./observe/last-rollout.ts";
import type { Snapshot } from "./observe/observe.ts";
import type { PipeScalingView } from "./observe/pipe-scaling-view.ts";
import type { PipeView } from "./observe/pipe-view.ts";
import type { ContainerView, PodView } from "./observe/pod-view.ts";
import type { Resources } from "./observe/resources.ts";
import type { WriteRecord } from "./observe/write-record.ts";

/** The reason why a pipe cannot have a size: one word for programs, and the end of a sentence for people. */
export interface Cause {
  readonly reason: FailureReason;
  readonly message: string;
}

/** A failure to resize a pipe. Times are in milliseconds since 1970. */
export interface Failure extends Cause {
  /** Number of attempts with this size. */
  readonly attempts: number;
  readonly atMs: number;
  /** The object changed between a read and the write. */
  readonly isConflict?: boolean | undefined;
  /** Absent if there is no automatic retry, or its time is not known, and none is requested for later. */
  readonly retryAtMs?: number;
  /** The next attempt is in flight or waits for its turn. Until it ends, the reported failure stays as it is. */
  readonly isRepeated?: boolean;
}

/** The input of rules besides the pipe. */
export interface PipeContext extends Omit<Snapshot, "pods" | "endedPods" | "scaling"> {
  /** The size that the pipes get: the requested one, or the larger previous one if containers ran out of memory. */
  readonly desired: Size;
  /** Present if the pipes get the previous size, because containers ran out of memory with the requested one. */
  readonly outOfMemory: OutOfMemory | undefined;
  /** The record for annotations: `outOfMemory`, or during a boost the one for the size that applies after the boost. */
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
  /** The container to resize; `undefined` if the pod does not have it. */
  readonly own: ContainerView | undefined;
  readonly state: PodState;
  /** The last write of the desired size to the pod by this process; absent if it failed and a retry was requested. */
  readonly record: WriteRecord | undefined;
}

/** A pipe, with everything that its rules depend on. */
export interface Subject extends PipeContext {
  readonly pipe: PipeView;
  /** Name of the container to resize; empty if it is unclear which one that is. */
  readonly container: string;
  /** All of its pods that the controller sees. */
  readonly pods: readonly PodView[];
  /** The pods that need the size: those that are neither terminating nor ended. */
  readonly active: readonly ActivePod[];
  /** The pod of the pipe that was last seen to end. */
  readonly endedPod: EndedPod | undefined;
  /** Resources of the pipe's container at the desired size. */
  readonly target: Resources;
}

export interface DryRun {
  readonly isAccepted: boolean;
  /** The check to make now; absent if it is accepted, in flight, or repeated later. */
  readonly action?: Of<"dry-run" | "check-room">;
}

/**
 * Why one way to resize a pipe is not possible. `untilMs`: until then, this may end by itself, so the pipe waits; in
 * milliseconds since 1970.
 */
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
   * `untilMs`: when the resize fails or a failed write is repeated, unless something happens before that; in
   * milliseconds since 1970.
   * `because`: what the last pods wait for, for people. `hindrance`: why the writes so far have failed, if the strategy
   * replaces no pods.
   */
  | {
      readonly type: "wait";
      readonly untilMs: number;
      readonly because?: string;
      readonly failure?: Failure | undefined;
      readonly hindrance?: Fallback;
    }
  /** Another writer resized pods that are not resized back: the attempts are used up, or it is not possible now. */
  | { readonly type: "conflict"; readonly failure: Failure }
  /** The kubelet defers a resize, and the rollout would stop old pods first. `message`: why it waits, for people. */
  | {
      readonly type: "defer";
      readonly message: string;
      /** A closed rollout window holds the rollout back, so room elsewhere would be of no use yet. */
      readonly isHeld: boolean;
      /** When this may change without an event, such as by the next search for room; in milliseconds since 1970. */
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
  /** No pipe of the service has proven the size, one begins as the canary, and several wait. */
  readonly isCanaryOfSeveral: boolean;
  /** The pipe is chosen to begin now, if its dry run is accepted. */
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
  /** Writes that continue what has begun, so they do not wait for a turn. */
  | { readonly type: "continue"; readonly actions: readonly Action[] }
  /** The write that begins the commit of a resized pipe. It waits for its turn in the line of commits. */
  | { readonly type: "commit"; readonly action: Action };

/** The result of a rule for a pipe. */
export interface PipeDecision {
  readonly state: PipeState;
  /** The phase of its rollout, if it is not the one that its workload shows. */
  readonly phase?: RolloutPhase;
  readonly failure?: Failure | undefined;
  /** The current step of the pipe, for people: a clause without a full stop. */
  readonly activity?: string;
  /** Why only a rollout could apply the size, while no pod may be replaced. The pipe waits until this changes. */
  readonly hindrance?: Fallback;
  /** Only the owner of the pipe can end the wait, which the owner chose, for example with a partition. */
  readonly waitsForOwner?: boolean;
  /** The reason why the rollout, or a deferred resize, makes no progress, if known. */
  readonly obstacle?: string | undefined;
  /** Absent if nothing is left to do, or if something has to happen first. */
  readonly next?: Next;
  /** Time at which this decision may change without an event, in milliseconds since 1970. */
  readonly recheckAtMs?: number | undefined;
}

/** The state of one pipe relative to the desired size. */
export interface Assessment extends PipeDecision {
  readonly subject: Subject;
  readonly pipe: PipeView;
  readonly phase: RolloutPhase;
  /** When a phase in which pods are replaced times out, in milliseconds since 1970. */
  readonly phaseEndsAtMs?: number | undefined;
  /** Shows whether the size works. */
  readonly proof: "none" | "proving" | "proven";
  /** The failure of a rollout to a size that is no longer desired. The pipe is rolled back unless it is resized now. */
  readonly abandoned?: Cause | undefined;
  /** True if pods run the size that they get instead of one with which the service ran out of memory. */
  readonly isReturned?: boolean;
  /** Information for people that does not affect the decision. */
  readonly remark?: string | undefined;
}
