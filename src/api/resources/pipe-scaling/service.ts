import { describeSize, type Size } from "../../../domain/size.ts";
import type { Service } from "../../../records/service.ts";
import type { SizeRequest } from "../../cluster/pipe-scaling-writer.ts";
import { atTime } from "../../cluster/views.ts";
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
import type { ProgressAt } from "./progress-schema.ts";

/** Returns the last size that all pipes of a service had at the same time. */
export function reachedSize(service: Service, cache: Scalings): Size {
  const { effective } = requireScaling(service, cache);
  if (effective) return effective;
  throw apiError("NoSizeYet");
}

/** Returns the progress of the pipes of a service toward the size that they should have at this time. */
export function scalingProgress(service: Service, cache: Scalings, nowMs: number): ProgressAt {
  const scaling = requireScaling(service, cache);
  return { ...atTime(scaling, nowMs), effective: scaling.effective, nowMs };
}

/**
 * Requests a size. During a boost, the pipes get it only after the boost.
 *
 * @returns the stored size, which a webhook of the cluster may have changed
 * @throws the errors of {@link changeScaling}; ApiError 400 for a size above the tier
 */
export async function requestSize(
  params: ServiceParams,
  size: Size,
  request: SizeRequest & Requester,
  deps: ScalingChangeDeps,
): Promise<Size> {
  requireWithinTier(size, params.organization, deps.tiers);
  const to = describeSize(size);
  const change = {
    audit: "scaling",
    to,
    coalesceKey: to,
    what: "this size",
    unconfirmed: "NotConfirmed",
    valueIn: ({ requested }) => requested && describeSize(requested),
    write: (current, author) => deps.scalingWriter.write(current, size, author),
  } satisfies ScalingChange;
  const { requested = size } = await changeScaling(params, change, request, deps);
  return requested;
}
