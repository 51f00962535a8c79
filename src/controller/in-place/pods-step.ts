import type { InPlaceAction } from "../actions.ts";
import type { Failure } from "../assessment.ts";
import type { Problem } from "./problem.ts";
import type { Deferral } from "./room.ts";

/** After the first pod has the size. */
export const MAX_CONCURRENT_PODS = 10;

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
  | Deferral
  | Failed;

export type Failed = { readonly type: "fail" } & Problem;
