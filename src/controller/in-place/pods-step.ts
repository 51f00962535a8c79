import type { Action, InPlaceAction } from "../actions.ts";
import type { ActivePod, Failure, Problem, Subject } from "../assessment.ts";

/** After the first pod has the size. */
const MAX_CONCURRENT_PODS = 10;

/**
 * Returns how many pods may be resized now. One pod goes first, because it shows whether the size works.
 *
 * @param others the pods that do not have the size
 */
export function podsAtOnce(others: readonly ActivePod[], { active }: Subject): number {
  return others.length === active.length ? 1 : MAX_CONCURRENT_PODS;
}

/** The next step for the pods of a pipe whose resize in place has begun or may begin. */
export type PodsStep =
  /** Without actions if every pod has the size. `failure`: why pods that had the size are resized again. */
  | {
      readonly type: "resize";
      readonly actions: readonly InPlaceAction[];
      readonly failure?: Failure | undefined;
    }
  /** `untilMs`: when it fails, or the failed write is repeated, unless something happens; in milliseconds since 1970. */
  | { readonly type: "wait"; readonly untilMs: number; readonly failure?: Failure | undefined }
  /** Another writer gave pods another size each time, so nothing is written any more. */
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
