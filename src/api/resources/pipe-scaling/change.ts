import type { Size } from "../../../domain/size.ts";
import type { Tiers } from "../../../domain/tier.ts";
import type { Logger } from "../../../telemetry/log.ts";
import type { ClusterCache } from "../../cluster/cluster-cache.ts";
import type { PipeScalingWriter, SizeRequest } from "../../cluster/pipe-scaling-writer.ts";
import { retryOnConflict } from "../../cluster/retry-on-conflict.ts";
import type { PipeScalingView } from "../../cluster/views.ts";
import type { WriteQueue } from "../../cluster/write-queue.ts";
import { ConflictError, InvalidRequestError, UnavailableError } from "../../errors.ts";
import type { Requester } from "../../middleware/request-context.ts";
import type { ServiceParams } from "../path-params.ts";

/** The object before and after a change. */
export interface ScalingWrite {
  readonly before: PipeScalingView;
  readonly written: PipeScalingView;
}

export interface ScalingChangeDeps {
  readonly cache: Pick<ClusterCache, "scaling" | "observeScaling">;
  readonly scalingWriter: Pick<PipeScalingWriter, "write" | "writeBoost" | "read">;
  readonly scalingWrites: WriteQueue<ScalingWrite>;
  readonly tiers: Tiers;
  readonly log: Logger;
}

/** A change that a caller requests of what the pipes of a service should have. */
export interface ScalingChange {
  /** For the audit log: the kind of change, and the value after it. */
  readonly audit: "scaling" | "boost";
  readonly to: string | undefined;
  /** Returns the value in an object, for the value before the change in the audit log. */
  readonly valueIn: (scaling: PipeScalingView) => string | undefined;
  /** The object of the sentence "The cluster's policy does not allow …". */
  readonly what: string;
  /** Waiting changes with the same key are made once. Absent if each is made. */
  readonly coalesceKey?: string;
  /** @throws ApiError if the state does not allow the change; then nothing has changed */
  readonly write: (current: PipeScalingView) => Promise<PipeScalingView>;
}

/**
 * Makes a change: normally exactly one call to the cluster.
 *
 * @throws InvalidRequestError, ConflictError if the state does not allow it, or the error of `permit` or of the change; then
 *   nothing has changed
 * @throws UnavailableError otherwise
 */
export async function changeScaling(
  { organization, service }: ServiceParams,
  { audit, to, valueIn, what, coalesceKey, write: writeTo }: ScalingChange,
  { permit, requestId, apiKey }: SizeRequest & Requester,
  { cache, scalingWriter, scalingWrites, log }: ScalingChangeDeps,
): Promise<void> {
  const { namespace, id } = service;
  const line = { audit, requestId, apiKey, organization: organization.id, service: id, to };
  const write = async (permitted: () => void) => {
    const change = await retryOnConflict({
      cached: cache.scaling(namespace, id),
      read: () => scalingWriter.read(namespace, id),
      attempt: async (target) => {
        const before = requireProvisioned(target);
        requireChangeable(before);
        permitted();
        return { before, written: await writeTo(before) };
      },
      what,
    });
    cache.observeScaling(namespace, change.written);
    return change;
  };
  const queued = { permit, write, ...(coalesceKey === undefined ? {} : { coalesceKey }) };
  try {
    const { before } = await scalingWrites.run(`${namespace}/${id}`, queued);
    log.info({ ...line, from: valueIn(before) }, "size accepted");
  } catch (err) {
    // The change may have been made anyway.
    if (err instanceof UnavailableError) log.warn({ ...line, err }, "size not confirmed");
    throw err;
  }
}

export function requireProvisioned(scaling: PipeScalingView | undefined): PipeScalingView {
  if (scaling) return scaling;
  throw new InvalidRequestError(
    "No database pipe has been provisioned on this service yet: scaling is available once there is one.",
  );
}

/** @throws InvalidRequestError for a size above the maximum of the tier */
export function requireWithinTier(size: Size, tierName: string, tiers: Tiers): void {
  const tier = tiers.get(tierName);
  if (!tier) throw new Error(`the organization's tier, ${tierName}, is not in this API's tiers`);
  const { cpuMillicores, memoryGib } = tier.maximumSize;
  if (size.cpuMillicores <= cpuMillicores && size.memoryGib <= memoryGib) return;
  throw new InvalidRequestError(
    `The size is above what the organization's tier allows: replicaCpuMillicores at most ${cpuMillicores}, replicaMemoryGb at most ${memoryGib}.`,
  );
}

function requireChangeable({ suspended, metadata }: PipeScalingView): void {
  if (suspended) {
    throw new ConflictError(
      "Scaling of this service is suspended: the size cannot be changed until it is resumed.",
    );
  }
  // A change to an object that is being deleted would be lost.
  if (metadata.deletionTimestamp !== undefined) {
    throw new UnavailableError("The service is being set up again. Try again shortly.");
  }
}
