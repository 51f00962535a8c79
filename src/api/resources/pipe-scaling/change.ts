import type { Size } from "../../../domain/size.ts";
import type { Tier, Tiers } from "../../../domain/tier.ts";
import { isBeingDeleted } from "../../../kube/objects.ts";
import type { Organization } from "../../../records/organization.ts";
import type { Service } from "../../../records/service.ts";
import type { Logger } from "../../../telemetry/log.ts";
import type { ClusterCache } from "../../cluster/cluster-cache.ts";
import type { PipeScalingWriter, SizeRequest } from "../../cluster/pipe-scaling-writer.ts";
import { retryOnConflict } from "../../cluster/retry-on-conflict.ts";
import type { PipeScalingView } from "../../cluster/views.ts";
import type { WriteQueue } from "../../cluster/write-queue.ts";
import { apiError, isNotConfirmed } from "../../errors.ts";
import type { Requester } from "../../middleware/request-context.ts";
import type { ServiceParams } from "../path-params.ts";

export type Scalings = Pick<ClusterCache, "scaling" | "hasHadScaling">;

/** The object before and after a change. */
export interface ScalingWrite {
  readonly before: PipeScalingView;
  readonly written: PipeScalingView;
}

export interface ScalingChangeDeps {
  readonly cache: Scalings & Pick<ClusterCache, "observeScaling">;
  readonly scalingWriter: Pick<PipeScalingWriter, "write" | "writeBoost" | "read">;
  readonly scalingWrites: WriteQueue<ScalingWrite>;
  readonly tiers: Tiers;
  readonly log: Logger;
}

/** A requested change of the size or the boost of a service. */
export interface ScalingChange {
  /** Kind of the change, for the audit log. */
  readonly audit: "scaling" | "boost";
  /** Value after the change, for the audit log; `undefined` for the end of a boost. */
  readonly to: string | undefined;
  /** Returns the value in an object, for the audit log. */
  readonly valueIn: (scaling: PipeScalingView) => string | undefined;
  /** The reason for the caller if the change may have no effect, although it was written. */
  readonly unconfirmed: "NotConfirmed" | "EndNotConfirmed";
  /** The object of the sentence "The cluster's policy does not allow …". */
  readonly what: string;
  /** Consecutive waiting changes with the same key are made once. Without a key, each is made. */
  readonly coalesceKey?: string;
  /** @throws ApiError 4xx if the state does not allow the change; then nothing has changed */
  readonly write: (current: PipeScalingView, request: SizeRequest) => Promise<PipeScalingView>;
}

/**
 * Makes a change: normally exactly one call to the cluster.
 *
 * @returns the stored object, in which a webhook may have changed the value
 * @throws ApiError 4xx if the state or admission does not allow it, or the error of `permit`; then nothing has changed
 * @throws ApiError 503 otherwise
 */
export async function changeScaling(
  { organization, service }: ServiceParams,
  change: ScalingChange,
  { permit, ...request }: SizeRequest & Requester,
  { cache, scalingWriter, scalingWrites, log }: ScalingChangeDeps,
): Promise<PipeScalingView> {
  const { audit, to, valueIn, what, coalesceKey } = change;
  const { namespace, id } = service;
  const { requestId, apiKey } = request;
  const line = { audit, requestId, apiKey, organization: organization.id, service: id, to };
  const write = async (permitted: () => void) => {
    const outcome = await retryOnConflict({
      cached: cache.scaling(namespace, id),
      read: () => scalingWriter.read(namespace, id),
      attempt: async (target) => {
        permitted();
        const before = requireProvisioned(target, service, cache);
        requireChangeable(before);
        return { before, written: await change.write(before, request) };
      },
      what,
    });
    cache.observeScaling(namespace, outcome.written);
    requireEffective(outcome.written, change);
    return outcome;
  };
  const queued = { permit, write, ...(coalesceKey === undefined ? {} : { coalesceKey }) };
  try {
    const { before, written } = await scalingWrites.run(`${namespace}/${id}`, queued);
    const stored = to === undefined ? undefined : valueIn(written);
    log.info({ ...line, from: valueIn(before), to: stored }, "size accepted");
    return written;
  } catch (err) {
    // The change may have been made anyway.
    if (isNotConfirmed(err)) log.warn({ ...line, err }, "size not confirmed");
    throw err;
  }
}

/** @throws the errors of {@link requireProvisioned} */
export function requireScaling(service: Service, cache: Scalings): PipeScalingView {
  return requireProvisioned(cache.scaling(service.namespace, service.id), service, cache);
}

/** @throws ApiError 400 if the service has no PipeScaling; 503 if it had one until recently (`hasHadScaling`) */
export function requireProvisioned<T>(
  scaling: T | undefined,
  { namespace, id }: Service,
  cache: Pick<Scalings, "hasHadScaling">,
): T {
  if (scaling) return scaling;
  throw apiError(cache.hasHadScaling(namespace, id) ? "BeingSetUp" : "NoPipe");
}

/** @throws ApiError 503 if the tier of the organization is not, or not yet, in the settings of this process */
export function tierOf({ tier: name }: Organization, tiers: Tiers): Tier {
  const tier = tiers.get(name);
  if (tier) return tier;
  const cause = new Error(`the organization's tier, ${name}, is not in this API's tiers`);
  throw apiError("UnknownTier").with({ cause });
}

/** @throws ApiError 400 for a size above the maximum of the tier; 503 like {@link tierOf} */
export function requireWithinTier(size: Size, organization: Organization, tiers: Tiers): void {
  const { maximumSize } = tierOf(organization, tiers);
  const { cpuMillicores, memoryGib } = maximumSize;
  if (size.cpuMillicores <= cpuMillicores && size.memoryGib <= memoryGib) return;
  throw apiError("AboveTier", maximumSize);
}

function requireChangeable({ suspended, metadata }: PipeScalingView): void {
  if (suspended) throw apiError("Suspended");
  // A change to an object that is being deleted would be lost.
  if (isBeingDeleted(metadata)) throw apiError("BeingSetUp");
}

/**
 * The object may have been deleted or suspended after it was read, and the write was made then. A deleted object is
 * lost, but a suspended one keeps the value, as if the request had come before the suspension.
 *
 * @throws ApiError 503 if the change may have no effect
 */
function requireEffective(written: PipeScalingView, { to, valueIn, unconfirmed }: ScalingChange): void {
  const isRemoved = to !== undefined && valueIn(written) === undefined;
  if (!isBeingDeleted(written.metadata) && !isRemoved) return;
  const cause = new Error("the stored PipeScaling is being deleted, or lacks the value");
  throw apiError(unconfirmed).with({ cause });
}
