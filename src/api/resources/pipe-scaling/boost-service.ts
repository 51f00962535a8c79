import type { Boost } from "../../../domain/boost.ts";
import { describeSize } from "../../../domain/size.ts";
import { isOutcomeUnknown } from "../../../kube/errors.ts";
import type { Service } from "../../../records/service.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { SizeRequest } from "../../cluster/pipe-scaling-writer.ts";
import { atTime, type PipeScalingView } from "../../cluster/views.ts";
import { apiError } from "../../errors.ts";
import type { Requester } from "../../middleware/request-context.ts";
import type { ServiceParams } from "../path-params.ts";
import {
  changeScaling,
  requireScaling,
  requireWithinTier,
  type ScalingChange,
  type ScalingChangeDeps,
  type Scalings,
} from "./change.ts";

export interface BoostServiceDeps extends ScalingChangeDeps {
  readonly clock: Pick<Clock, "now">;
  /** Maximum time from a request for a boost to the end of the boost. */
  readonly maxBoostMs: number;
}

/** @throws ApiError 404 if no boost is in effect */
export function currentBoost(
  service: Service,
  { cache, clock }: { readonly cache: Scalings; readonly clock: Pick<Clock, "now"> },
): Boost {
  return requireBoost(requireScaling(service, cache), clock.now());
}

/**
 * Sets the boost of a service, in place of an earlier one.
 *
 * @returns the stored boost, which a webhook of the cluster may have changed
 * @throws the errors of {@link changeScaling}; ApiError 400 for a size above the tier, or an end that is past or too
 *   far away
 */
export async function startBoost(
  params: ServiceParams,
  boost: Boost,
  request: SizeRequest & Requester,
  deps: BoostServiceDeps,
): Promise<Boost> {
  requireWithinTier(boost.size, params.organization, deps.tiers);
  requireNearEnd(boost.untilMs, deps);
  const to = describeBoost(boost);
  const change = { ...changeOf(boost, deps), to, coalesceKey: `boost ${to}` };
  const { boosted = boost } = await changeScaling(params, change, request, deps);
  return boosted;
}

/**
 * Ends the boost of a service now.
 *
 * @throws the errors of {@link changeScaling}; ApiError 404 if no boost is in effect
 */
export async function endBoost(
  params: ServiceParams,
  request: SizeRequest & Requester,
  deps: BoostServiceDeps,
): Promise<void> {
  await changeScaling(params, changeOf(undefined, deps), request, deps);
}

function changeOf(boost: Boost | undefined, deps: BoostServiceDeps): ScalingChange {
  return {
    audit: "boost",
    to: undefined,
    what: "this boost",
    unconfirmed: boost ? "NotConfirmed" : "EndNotConfirmed",
    valueIn: ({ boosted }) => boosted && describeBoost(boosted),
    async write(current, author) {
      // Checked again after the wait in the queue: a boost with a past end would only end the boost in effect.
      if (boost) requireNearEnd(boost.untilMs, deps);
      else requireBoost(current, deps.clock.now());
      const write = deps.scalingWriter.writeBoost(current, boost, author);
      return boost ? await write : await ended(current, write, deps);
    },
  };
}

/**
 * Waits for the write that ends a boost. If its outcome is unknown, a read decides: the boost has ended if the object
 * no longer has it. Otherwise the outcome stays unknown, and a repeated request could end a boost that someone else has
 * started since.
 *
 * @throws ApiError 503 if the boost may not have ended
 */
async function ended(
  { metadata: { namespace = "", name }, boosted }: PipeScalingView,
  write: Promise<PipeScalingView>,
  { scalingWriter, clock }: BoostServiceDeps,
): Promise<PipeScalingView> {
  try {
    const written = await write;
    // Only a webhook can have kept the boost, or set another one, in this same write.
    if (!atTime(written, clock.now()).boost) return written;
    throw apiError("EndNotConfirmed").with({ cause: new Error("the stored PipeScaling has a boost") });
  } catch (error) {
    if (!isOutcomeUnknown(error)) throw error;
    // If it cannot be read either, the error of the write says why.
    const now = await scalingWriter.read(namespace, name).catch(() => undefined);
    const isSame = boosted && now?.boosted && describeBoost(now.boosted) === describeBoost(boosted);
    if (!now || isSame) throw apiError("EndNotConfirmed").with({ cause: error });
    return now;
  }
}

function requireBoost(scaling: PipeScalingView, nowMs: number): Boost {
  const { boost } = atTime(scaling, nowMs);
  if (boost) return boost;
  throw apiError("NoBoost");
}

function requireNearEnd(untilMs: number, { clock, maxBoostMs }: BoostServiceDeps): void {
  const nowMs = clock.now();
  const latestMs = nowMs + maxBoostMs;
  if (untilMs > nowMs && untilMs <= latestMs) return;
  const rule =
    untilMs <= nowMs
      ? `must be in the future: it is now ${formatInstant(nowMs)}`
      : `must be at most ${Math.floor(maxBoostMs / 60_000)} minutes ahead, so not after ${formatInstant(latestMs)}`;
  throw apiError("BoostEnd", rule);
}

function describeBoost({ size, untilMs }: Boost): string {
  return `${describeSize(size)} until ${formatInstant(untilMs)}`;
}

function formatInstant(ms: number): string {
  return new Date(ms).toISOString();
}
