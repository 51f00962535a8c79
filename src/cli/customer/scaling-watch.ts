import { sizeOf } from "../../crd/size-fields.ts";
import { describeSize, type Size, sameSize } from "../../domain/size.ts";
import { CliError } from "../failure.ts";
import type { PollOptions } from "../view/poll.ts";
import { earliestRetry, type RescaleState, type RescaleView } from "../view/rescale-view.ts";
import { profileFlag } from "./access.ts";
import type { ApiClient } from "./client.ts";
import { ErrorResponse, NoResponse } from "./errors.ts";
import { type Progress, progress } from "./responses.ts";

export interface ScalingWatchOptions {
  readonly api: Pick<ApiClient, "requestOnce" | "access">;
  /** Path of the service's pipesCdcScaling. */
  readonly path: string;
  readonly service: string;
  /** The size that this command requested. */
  readonly requested: { readonly size: Size; readonly requestId: string } | undefined;
}

/** A key may send 10 requests in 10 s by default, and others may use it, too. */
const POLL_MS = 2500;

/**
 * Reads the progress of a rescale from the API.
 *
 * Replicas of the API can be a second apart. So the outcome of another request is never taken for that of ours,
 * and ours is superseded only if two reads in a row say so (docs/adr/0017).
 */
export function watchScaling({ api, path, service, requested }: ScalingWatchOptions): PollOptions {
  let isMaybeSuperseded = false;
  return {
    async read() {
      const request = { method: "GET", path: `${path}/progress` } as const;
      const { result } = await api.requestOnce(request, progress);
      const isForeign = isOfAnother(result, requested);
      if (isForeign && isMaybeSuperseded) throw superseded(result, service, profileFlag(api.access));
      isMaybeSuperseded = isForeign;
      if (isForeign) return { view: undefined };
      return { view: viewOf(service, result), data: { service, ...result } };
    },
    retryAfterMs,
    intervalMs: POLL_MS,
    isKnownToWork: requested !== undefined,
  };
}

/** The progress belongs to another request for another size. */
function isOfAnother({ requestId, desired }: Progress, requested: ScalingWatchOptions["requested"]): boolean {
  if (!requested || requestId === requested.requestId) return false;
  return !sameSize(desired && sizeOf(desired), requested.size);
}

function superseded({ requestId, desired }: Progress, service: string, flag: string): CliError {
  const size = desired ? ` (${describeSize(sizeOf(desired))})` : "";
  const who = requestId === undefined ? "A change without a request" : `Another request, ${requestId},`;
  return new CliError(
    `${who} set another size${size}: your request was superseded. To watch the other one: pipe-scaling scaling get ${service} --watch${flag}`,
  );
}

function retryAfterMs(error: unknown): number | undefined {
  if (error instanceof NoResponse) return 0;
  const isTransient = error instanceof ErrorResponse && (error.status === 429 || error.status >= 500);
  return isTransient ? (error.retryAfterMs ?? 0) : undefined;
}

const STATES: readonly RescaleState[] = ["propagating", "scaled", "failed", "suspended"];

export function viewOf(service: string, of: Progress): RescaleView {
  const { state, desired, effective, pipes, failures, fallbacks = [] } = of;
  const { requestId, reason, message, startedAt, completedAt } = of;
  return {
    ...{ service, requestId, reason, message },
    desired: desired && sizeOf(desired),
    source: desired?.source,
    effective: effective && sizeOf(effective),
    pipes: pipes ?? { total: 0, updated: 0 },
    startedAt: startedAt === undefined ? undefined : new Date(startedAt),
    completedAt: completedAt === undefined ? undefined : new Date(completedAt),
    // A later version of the API may have others.
    state: STATES.find((each) => each === state) ?? "unknown",
    pending: failures.map((failure) => ({ name: failure.pipe, state: "Failed", message: failure.message })),
    retryAt: earliestRetry(failures),
    fallbacks,
  };
}
