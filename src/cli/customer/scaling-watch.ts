import { sizeOf } from "../../crd/size-fields.ts";
import { describeSize, type Size, sameSize } from "../../domain/size.ts";
import { CliError } from "../failure.ts";
import type { PollOptions } from "../view/poll.ts";
import { earliestRetry, type RescaleState, type RescaleView } from "../view/rescale-view.ts";
import { watchCommand } from "./access.ts";
import { type ApiClient, MAX_WAIT_MS } from "./client.ts";
import { ErrorResponse, isTemporary, NoResponse } from "./errors.ts";
import { type Progress, progress } from "./responses.ts";

export interface ScalingWatchOptions {
  readonly api: Pick<ApiClient, "requestOnce" | "access" | "now">;
  /** Path of the service's pipesCdcScaling. */
  readonly path: string;
  readonly service: string;
  /** The size that this command requested; `undefined` to follow any rescale. */
  readonly requested: RequestedSize | undefined;
  /** This command ended the boost. */
  readonly hasEndedBoost?: boolean;
}

export interface RequestedSize {
  readonly size: Size;
  readonly requestId: string;
  /** The end of the requested boost; absent for a size without an end. */
  readonly until?: string;
}

/** A key may send 10 requests in 10 s by default, and others may use it, too. */
const POLL_MS = 2500;

/**
 * Reads the progress of a rescale from the API.
 *
 * The state in one replica of the API can be a second older than in another. So an outcome for another size is never
 * shown as that of this request, which counts as superseded only after two reads in a row say so (docs/adr/0017). After
 * this command ended a boost, a boost is shown only at the second read in a row that has one.
 */
export function watchScaling(options: ScalingWatchOptions): PollOptions {
  const { api, path, service, requested, hasEndedBoost = false } = options;
  let isMaybeSuperseded = false;
  let isMaybeBoosted = false;
  return {
    async read() {
      const request = { method: "GET", path: `${path}/progress` } as const;
      const { result } = await api.requestOnce(request, progress);
      const isForeign = isOfAnother(result, requested);
      if (requested && isForeign && isMaybeSuperseded) throw superseded(result, requested, service, api);
      isMaybeSuperseded = isForeign;
      const isStale = hasEndedBoost && result.boost !== undefined && !isMaybeBoosted;
      isMaybeBoosted = result.boost !== undefined;
      if (isForeign || isStale) return { view: undefined };
      return { view: viewOf(service, result), data: { service, ...result } };
    },
    retryAfterMs,
    intervalMs: POLL_MS,
  };
}

/** The progress belongs to another request for another size. */
function isOfAnother({ requestId, desired }: Progress, requested: ScalingWatchOptions["requested"]): boolean {
  if (!requested || requestId === requested.requestId) return false;
  return !sameSize(desired && sizeOf(desired), requested.size);
}

function superseded(
  { requestId, desired, boost }: Progress,
  requested: RequestedSize,
  service: string,
  api: Pick<ApiClient, "access" | "now">,
): CliError {
  if (boost && requested.until === undefined)
    return new CliError(
      `A boost is in effect until ${boost.until}, so the pipes get ${describeSize(requested.size)} after it. To end it now: pipe-scaling scaling boost ${service} --end${api.access.flags}`,
    );
  if (!boost && requested.until !== undefined && Date.parse(requested.until) <= api.now())
    return new CliError(
      `The boost ended at ${requested.until}, before every pipe had its size. To watch the return to the requested size: ${watchCommand(api.access, service)}`,
    );
  const size = desired ? ` (${describeSize(sizeOf(desired))})` : "";
  const who = requestId === undefined ? "A change without a request" : `Another request, ${requestId},`;
  return new CliError(
    `${who} set another size${size}: your request was superseded. To watch the other one: ${watchCommand(api.access, service)}`,
  );
}

function retryAfterMs(error: unknown): number | undefined {
  if (error instanceof NoResponse) return 0;
  if (!(error instanceof ErrorResponse) || !isTemporary(error.status)) return undefined;
  return Math.min(error.retryAfterMs ?? 0, MAX_WAIT_MS);
}

const STATES: readonly RescaleState[] = ["propagating", "scaled", "failed", "suspended"];

export function viewOf(service: string, of: Progress): RescaleView {
  const { state, desired, boost, effective, pipes, failures, fallbacks = [] } = of;
  const { requestId, reason, message, startedAt, completedAt } = of;
  return {
    service,
    requestId,
    reason,
    message,
    desired: desired && sizeOf(desired),
    source: desired?.source,
    boost: boost && {
      size: sizeOf(boost),
      until: boost.until,
      leftMs: boost.remainingSeconds * 1000,
    },
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
