import type { PendingPipe, PipeFallback, ResizeMethod } from "../../crd/pipe-scaling.ts";
import { describeSize, type Size } from "../../domain/size.ts";
import type { Row } from "../output.ts";
import { roughly } from "./time.ts";

/** The rescale of a service at one moment, as the controller or the API reports it. */
export interface RescaleView {
  /** ID or name of the service. */
  readonly service: string;
  readonly desired: Size | undefined;
  /** Source of the desired size: Spec, Boost, TierDefault or TierLimit. */
  readonly source: string | undefined;
  /** The boost in effect, with the time left. */
  readonly boost?: BoostView | undefined;
  /** The last size that every pipe had at once. */
  readonly effective: Size | undefined;
  readonly pipes: { readonly total: number; readonly updated: number; readonly inPlace?: number | undefined };
  readonly startedAt: Date | undefined;
  readonly completedAt: Date | undefined;
  readonly requestId: string | undefined;
  readonly state: RescaleState;
  /** One word for programs, and a sentence for people. */
  readonly reason: string;
  readonly message: string;
  /** Time of the next attempt after a failure. */
  readonly retryAt?: Date | undefined;
  /** Pipes whose pods or template do not have the desired size yet. The API reports only those that failed. */
  readonly pending: readonly PendingPipe[];
  /** How pipes got the desired size. The API does not report it. */
  readonly resizedBy?: Readonly<Record<string, ResizeMethod>> | undefined;
  /** Pipes that restart because they could not be resized in place. */
  readonly fallbacks: readonly PipeFallback[];
}

export interface BoostView {
  readonly size: Size;
  /** In UTC. */
  readonly until: string;
  /** Remaining time when the boost was read, in milliseconds. */
  readonly leftMs: number;
}

/** State in the API; `unknown` if nothing has been reported yet, or for a state of a later version. */
export type RescaleState = "propagating" | "scaled" | "failed" | "suspended" | "unknown";

/** Returns the time of the next attempt for any of the failed pipes; `undefined` if none is retried automatically. */
export function earliestRetry(
  failures: readonly { readonly nextRetryAt?: string | undefined }[],
): Date | undefined {
  const [earliest] = failures.flatMap(({ nextRetryAt }) => nextRetryAt ?? []).toSorted();
  return earliest === undefined ? undefined : new Date(earliest);
}

export function describeBoost({ size, until, leftMs }: BoostView): string {
  return `${describeSize(size)} until ${until} (${roughly(leftMs)} left)`;
}

/** The state and the sizes, as tables show them. */
export function rowOfView(view: RescaleView): Row {
  const { state, reason, message, desired, source, boost, effective, pipes } = view;
  return {
    state,
    reason,
    message,
    desired: desired && describeSize(desired),
    source,
    ...(boost ? { boost: describeBoost(boost) } : {}),
    effective: effective && describeSize(effective),
    pipes: pipes.total === 0 ? undefined : `${pipes.updated}/${pipes.total}`,
  };
}
