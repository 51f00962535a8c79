import type { FailureReason } from "../../crd/reasons.ts";
import type { LastRollout } from "./last-rollout.ts";

/** The reason why a write was not made: the API server rejected it, or the controller found no node that fits. */
export interface WriteError {
  readonly reason: Extract<FailureReason, "Refused" | "Forbidden" | "WriteFailed" | "NoNodeLargeEnough">;
  /** The message of the server, or the request and the largest node. */
  readonly message: string;
  /** Retry-After of the server. */
  readonly retryAfterMs?: number | undefined;
}

export type WritePurpose = "resize" | "roll-back" | "adopt";

/**
 * The last writes of this process to one Deployment. The record does not depend on the object, and bounds repeated
 * writes.
 */
export interface WriteRecord {
  readonly purpose: WritePurpose;
  /** The requested size, in the format of `formatSize`. */
  readonly size: string;
  /** Number of consecutive writes with the same purpose and size. */
  readonly attempts: number;
  /** Time of the last one, in milliseconds since 1970. */
  readonly lastAtMs: number;
  readonly outcome:
    | { readonly type: "pending" }
    /** No response: only a read can show whether the write succeeded. */
    | { readonly type: "unknown"; readonly error: WriteError }
    | { readonly type: "failed"; readonly error: WriteError; readonly generation: number }
    /** `isStripped`: something removed the annotation from the object before it was stored. */
    | { readonly type: "done"; readonly lastRollout: LastRollout; readonly isStripped: boolean };
}
