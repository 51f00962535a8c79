import { describeSize, type Size } from "../../../domain/size.ts";
import type { Tier, Tiers } from "../../../domain/tier.ts";
import type { Organization } from "../../../records/organization.ts";
import type { Service } from "../../../records/service.ts";
import type { Logger } from "../../../telemetry/log.ts";
import type { ClusterCache } from "../../cluster/cluster-cache.ts";
import type { PipeScalingWriter, SizeRequest } from "../../cluster/pipe-scaling-writer.ts";
import { retryOnConflict } from "../../cluster/retry-on-conflict.ts";
import type { PipeScalingView } from "../../cluster/views.ts";
import type { WriteQueue } from "../../cluster/write-queue.ts";
import { apiError, isUnavailable } from "../../errors.ts";
import type { Requester } from "../../middleware/request-context.ts";
import type { ServiceParams } from "../path-params.ts";

type ScalingCache = Pick<ClusterCache, "scaling" | "observeScaling">;

/** An accepted size, and the previously requested one. */
export interface ScalingWrite {
  readonly from: Size | undefined;
  readonly written: PipeScalingView;
}

export interface ScalingServiceDeps {
  readonly cache: ScalingCache;
  readonly scalingWriter: Pick<PipeScalingWriter, "write" | "read">;
  readonly scalingWrites: WriteQueue<ScalingWrite>;
  readonly tiers: Tiers;
  readonly log: Logger;
}

/** Returns the size that every pipe of a service runs: the last one that all had at the same time. */
export function reachedSize({ namespace, id }: Service, cache: Pick<ScalingCache, "scaling">): Size {
  const { effective } = requireProvisioned(cache.scaling(namespace, id));
  if (effective) return effective;
  throw apiError("NoSizeYet");
}

/** Returns the progress of the pipes of a service toward the last requested size. */
export function scalingProgress(
  { namespace, id }: Service,
  cache: Pick<ScalingCache, "scaling">,
): Pick<PipeScalingView, "progress" | "effective"> {
  return requireProvisioned(cache.scaling(namespace, id));
}

/**
 * Requests a size: normally exactly one call to the cluster.
 *
 * @returns the accepted size
 * @throws ApiError 400, 409 if the state does not allow it, or the error of `permit`; then nothing has changed
 * @throws ApiError 503 otherwise
 */
export async function requestSize(
  { organization, service }: ServiceParams,
  size: Size,
  { permit, ...request }: SizeRequest & Requester,
  { cache, scalingWriter, scalingWrites, tiers, log }: ScalingServiceDeps,
): Promise<Size> {
  requireWithinTier(size, tierOf(organization, tiers));
  const { namespace, id } = service;
  const { requestId, apiKey } = request;
  const to = describeSize(size);
  const audit = { audit: "scaling", requestId, apiKey, organization: organization.id, service: id, to };
  const write = async (permitted: () => void) => {
    const change = await retryOnConflict({
      cached: cache.scaling(namespace, id),
      read: () => scalingWriter.read(namespace, id),
      attempt: async (target) => {
        const current = requireProvisioned(target);
        requireChangeable(current);
        permitted();
        return { from: current.requested, written: await scalingWriter.write(current, size, request) };
      },
      what: "this size",
    });
    cache.observeScaling(namespace, change.written);
    return change;
  };
  try {
    const { from } = await scalingWrites.run(`${namespace}/${id}`, { permit, write, coalesceKey: to });
    log.info({ ...audit, from: from && describeSize(from) }, "size accepted");
    return size;
  } catch (err) {
    // The size may have been accepted anyway.
    if (isUnavailable(err)) log.warn({ ...audit, err }, "size not confirmed");
    throw err;
  }
}

/** @throws ApiError 400 if the PipeScaling of a service does not exist */
export function requireProvisioned<T>(scaling: T | undefined): T {
  if (scaling) return scaling;
  throw apiError("NoPipe");
}

export function tierOf({ tier: name }: Organization, tiers: Tiers): Tier {
  const tier = tiers.get(name);
  if (tier) return tier;
  throw new Error(`the organization's tier, ${name}, is not in this API's tiers`);
}

function requireWithinTier(size: Size, { maximumSize }: Tier): void {
  const { cpuMillicores, memoryGib } = maximumSize;
  if (size.cpuMillicores <= cpuMillicores && size.memoryGib <= memoryGib) return;
  throw apiError("AboveTier", maximumSize);
}

function requireChangeable({ suspended, metadata }: PipeScalingView): void {
  if (suspended) throw apiError("Suspended");
  // A change to an object that is being deleted would be lost.
  if (metadata.deletionTimestamp !== undefined) throw apiError("BeingSetUp");
}
