import type { FailureReason } from "../../crd/reasons.ts";
import type { LastRollout } from "./last-rollout.ts";

/** Why a write was not done: by the API server, or by the controller because no node would fit. */
export interface WriteError {
  readonly reason: Extract<FailureReason, "Refused" | "Forbidden" | "WriteFailed" | "NoNodeLargeEnough">;
  /** The server's own words, or the request and the largest node. */
  readonly message: string;
  /** The wait that the server asks for. */
  readonly retryAfterMs?: number | undefined;
}

export type WritePurpose = "resize" | "roll-back" | "adopt";

/**
 * The last writes of this process to one Deployment. They do not depend on the object, and bound how often the same
 * write is repeated.
 */
export interface WriteRecord {
  readonly purpose: WritePurpose;
  /** The size that was requested, as `formatSize` writes it. */
  readonly size: string;
  /** Writes in a row for the same purpose and size. */
  readonly attempts: number;
  /** Time of the last one, in milliseconds since 1970. */
  readonly lastAtMs: number;
  readonly outcome:
    | { readonly type: "pending" }
    /** No response: the write may have been done, or not. Only a read can tell. */
    | { readonly type: "unknown"; readonly error: WriteError }
    | { readonly type: "failed"; readonly error: WriteError; readonly generation: number }
    /** `isStripped`: something removed the annotation from the object before it was stored. */
    | { readonly type: "done"; readonly lastRollout: LastRollout; readonly isStripped: boolean };
}
