import type { FallbackReason } from "../../crd/fallback-reasons.ts";
import type { FailureReason } from "../../crd/reasons.ts";
import type { KubeObject } from "../../kube/objects.ts";
import type { LastRollout } from "./last-rollout.ts";

/** Why a write, a dry run or a search for room failed, or why the controller had to undo a write. */
export interface WriteError {
  readonly reason: Extract<
    FailureReason,
    "Refused" | "Forbidden" | "WriteFailed" | "NoNodeLargeEnough" | "NoNodeHasRoom"
  >;
  /** For people, for example the message of the API server, or the request and the largest node. */
  readonly message: string;
  /** Retry-After of the server. */
  readonly retryAfterMs?: number | undefined;
  /** The object had changed since it was read. It was read again, so the first retry follows at once. */
  readonly isConflict?: boolean;
  /** The write succeeded, and another one had to undo it. */
  readonly isUndone?: boolean;
  /** Why only a rollout could apply the size. */
  readonly fallback?: FallbackReason;
}

/**
 * The purposes of the writes, dry runs, searches and reports that are remembered. Each object has at most one record
 * for each purpose.
 */
export const WRITE_PURPOSES = [
  ...["resize", "roll-back"],
  /** A write that changes nothing but the annotation and managedFields. */
  "adopt",
  /** Dry runs of the patch that starts a rollout, and of the one by which a template follows its pods. */
  ...["dry-run", "dry-run-commit"],
  /** The search for nodes with room for the new pods of a pipe that stops its old pods first. */
  "check-room",
  /** Writes to a pod: the size, or the size of its template again. */
  ...["resize-pod", "return-pod"],
  /** The deletion of a pod that Kubernetes does not replace by itself. */
  "delete-pod",
  /** The steps by which a template follows its pods. */
  ...["commit", "continue-commit", "resume"],
  /** A ReplicaSet gets another size than its Deployment, or pods another revision label, so that pods are replaced. */
  "replace-pods",
  /** Writes to a PipeScaling. One that does not exist yet has its key instead of a UID. */
  ...["status", "create"],
  /** The last status that was written, so that another writer who removes it does not cause endless writes. */
  "written-status",
  /** The report on an unmanaged object: not repeated for the same reason, because another controller may manage it. */
  "notice",
  /** The last rollout of a pipe that a status has shown, so that it is reported once. */
  "reported-rollout",
  /** The first report that a pipe cannot be resized in place and waits. Its subject is the size. */
  "hindered",
] as const;

export type WritePurpose = (typeof WRITE_PURPOSES)[number];

/** Writes to workloads. If one gets no response, a read of the workload shows whether it succeeded. */
export const READ_LATER: readonly WritePurpose[] = ["resize", "roll-back", "adopt", "commit", "resume"];

/** Writes of the steps in which a workload is held for a commit, or may be. */
export const COMMITS: readonly WritePurpose[] = ["commit", "continue-commit", "resume"];

/** The last writes of this process to one object with one purpose. */
export interface WriteRecord {
  /** The wanted state, such as a size in the format of `formatSize`. Another one starts a new count. */
  readonly subject: string;
  /** The runs of the containers of a pod before the write. */
  readonly runs?: string | undefined;
  /** People asked for this dry run, so it did not check the nodes. */
  readonly isRequested?: boolean | undefined;
  /**
   * Number of writes with the same subject that succeeded or were refused, including this one. If this one failed for
   * another reason (`isOfWrite`), it is `series`.
   */
  readonly attempts: number;
  /** Number of writes with the same subject since the last pause of an hour. */
  readonly series: number;
  /** The `series` of the other write, for the two writes of a commit to its workload, which share one bound. */
  readonly besides?: number;
  /** Time of the first attempt since the last one that succeeded or was refused, in milliseconds since 1970. */
  readonly undecidedSinceMs: number;
  /** Time of the last attempt, or of its response if it failed or was only a check, in milliseconds since 1970. */
  readonly lastAtMs: number;
  readonly outcome: /** `before`: the error of the attempt before this one. */
    | { readonly type: "pending"; readonly before?: WriteError | undefined }
    /** No response: only a read can show whether the write succeeded. */
    | { readonly type: "unknown"; readonly error: WriteError }
    /** `generation` of the object that the write was for. */
    | { readonly type: "failed"; readonly error: WriteError; readonly generation: number }
    | {
        readonly type: "done";
        readonly generation?: number;
        readonly annotation?: WrittenAnnotation | undefined;
      };
}

/** `isStripped`: something removed the annotation from the object before it was stored. */
export interface WrittenAnnotation {
  readonly lastRollout: LastRollout;
  readonly isStripped: boolean;
}

/** The memory of writes, by UID of the object. */
export interface WriteRecords {
  get(uid: string, purpose: WritePurpose): WriteRecord | undefined;
  /**
   * The runs of the containers of a pod when its resize was last seen as pending; `undefined` if it was not since the
   * last write to the pod.
   */
  pendingRuns(uid: string): string | undefined;
  /**
   * The last annotation that was written to a workload, and whether it was stored; `undefined` if a later write with
   * the same purpose has not succeeded.
   */
  lastAnnotation(uid: string): (WrittenAnnotation & Pick<WriteRecord, "attempts" | "lastAtMs">) | undefined;
}

export const NO_WRITES: WriteRecords = {
  get: () => undefined,
  pendingRuns: () => undefined,
  lastAnnotation: () => undefined,
};

/** The subject of the write by which the annotation of a pipe gets the generation of its PipeScaling. */
export function confirmationOf({ metadata }: KubeObject): string {
  return `generation ${metadata.generation}`;
}

/** Returns true while nothing shows whether a write succeeded. */
export function isOpen(record: Pick<WriteRecord, "outcome"> | undefined): boolean {
  return record?.outcome.type === "pending" || record?.outcome.type === "unknown";
}
