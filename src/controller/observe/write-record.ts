import type { LastRollout } from "./last-rollout.ts";

/** Why the API server did not do a write. */
export interface WriteError {
  readonly reason: "Refused" | "Forbidden" | "WriteFailed";
  /** The server's own words. */
  readonly message: string;
  /** The wait that the server asks for. */
  readonly retryAfterMs?: number | undefined;
}

export type WritePurpose = "resize" | "roll-back" | "adopt";

/**
 * The last writes of this process to one Deployment. Whatever becomes of the object, they bound how often the same
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
