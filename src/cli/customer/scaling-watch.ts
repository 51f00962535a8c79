import { describeSize, type Size, sameSize } from "../../domain/size.ts";
import { CliError } from "../failure.ts";
import type { PollOptions, Reading } from "../view/poll.ts";
import type { RescaleState, RescaleView } from "../view/rescale-view.ts";
import { profileFlag } from "./access.ts";
import type { ApiClient } from "./client.ts";
import { ErrorResponse, NoResponse } from "./errors.ts";
import { type Progress, progress, toSize } from "./responses.ts";

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
export class ScalingWatch {
  readonly #options: ScalingWatchOptions;
  #last: Progress | undefined;
  #isMaybeSuperseded = false;

  constructor(options: ScalingWatchOptions) {
    this.#options = options;
  }

  /** The last progress that counts. */
  get last(): Progress | undefined {
    return this.#last;
  }

  get pollOptions(): PollOptions {
    const isKnownToWork = this.#options.requested !== undefined;
    return { read: () => this.#read(), retryAfterMs, intervalMs: POLL_MS, isKnownToWork };
  }

  async #read(): Promise<Reading> {
    const { api, path, service } = this.#options;
    const { result, restMs } = await api.requestOnce({ method: "GET", path: `${path}/progress` }, progress);
    const isForeign = this.#isForeign(result);
    if (isForeign && this.#isMaybeSuperseded) throw superseded(result, service, profileFlag(api.access));
    this.#isMaybeSuperseded = isForeign;
    if (isForeign) return { view: undefined, restMs };
    this.#last = result;
    return { view: viewOf(service, result), restMs };
  }

  /** The progress belongs to another request for another size. */
  #isForeign({ requestId, desired }: Progress): boolean {
    const { requested } = this.#options;
    if (!requested || requestId === requested.requestId) return false;
    return !sameSize(desired && toSize(desired), requested.size);
  }
}

function superseded({ requestId, desired }: Progress, service: string, flag: string): CliError {
  const size = desired ? ` (${describeSize(toSize(desired))})` : "";
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

export function stateOf({ state }: Pick<Progress, "state">): RescaleState {
  return STATES.find((each) => each === state) ?? "unknown";
}

function viewOf(service: string, of: Progress): RescaleView {
  const { desired, effective, pipes, failures, fallbacks = [], requestId } = of;
  const { reason, message, startedAt, completedAt } = of;
  return {
    service,
    desired: desired && toSize(desired),
    source: desired?.source,
    effective: effective && toSize(effective),
    pipes: pipes ?? { total: 0, updated: 0 },
    startedAt: startedAt === undefined ? undefined : new Date(startedAt),
    completedAt: completedAt === undefined ? undefined : new Date(completedAt),
    requestId,
    state: stateOf(of),
    reason,
    message,
    pending: failures.map((failure) => ({ name: failure.pipe, state: "Failed", message: failure.message })),
    fallbacks,
  };
}
