import type { Size } from "../../domain/size.ts";

/** What is known of a service's rescale at one moment, by whatever way it became known. */
export interface RescaleView {
  /** Its id or its name, as people are to read it. */
  readonly service: string;
  readonly wanted: Size | undefined;
  /** What decided the wanted size: Spec, TierDefault or TierLimit. */
  readonly from: string | undefined;
  /** The last size that every pipe had at once. */
  readonly effective: Size | undefined;
  readonly pipes: { readonly total: number; readonly updated: number };
  readonly startedAt: Date | undefined;
  readonly completedAt: Date | undefined;
  /** When the last pipe came up, where that is known: the ground for an estimate. */
  readonly progressedAt?: Date | undefined;
  readonly requestId: string | undefined;
  readonly state: RescaleState;
  /** One word for programs and a sentence for people; empty where nothing is to be said. */
  readonly reason: string;
  readonly message: string;
  /** When what failed is tried again by itself, where that is known. */
  readonly retryAt?: Date | undefined;
  /** Each pipe that is known by name; through the API only those that failed are. */
  readonly lines: readonly PipeLine[];
}

/** The reason where the controller has not looked at the newest change: what its pipes do tells nothing of that. */
export const NOT_SEEN_YET = "NotSeenYet";

export type RescaleState =
  /** On its way to the pipes. */
  | "propagating"
  /** Every pipe has come up with it. */
  | "scaled"
  /** Nothing more comes of it without somebody's help, or for a while. */
  | "failed"
  | "suspended"
  /** Nothing has been reported yet. */
  | "unknown";

/** One pipe on its way from a size to the wanted one. */
export interface PipeLine {
  readonly name: string;
  readonly from: Size | undefined;
  readonly to: Size | undefined;
  readonly state: PipeLineState;
  /** Replicas that run the new size, of all. */
  readonly progress?: { readonly updated: number; readonly of: number } | undefined;
  /** Why it failed or does not go on; of one that waits what reads on: "for those under way". */
  readonly why?: string | undefined;
}

export type PipeLineState = "waiting" | "rolling" | "done" | "failed" | "paused";
