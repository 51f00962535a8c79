import { describeSize, type Size } from "../domain/size.ts";
import type { Tiers } from "../domain/tier.ts";
import type { Logger } from "../telemetry/log.ts";
import type { CachedScaling } from "./cached-objects.ts";
import type { Caches } from "./caches.ts";
import { changeObject } from "./object-change.ts";
import type { ServicePlace } from "./places.ts";
import { invalid, Problem, unavailable } from "./problem.ts";
import type { Origin, ScalingWriter } from "./scaling-writer.ts";

export interface ScalingDeps {
  readonly caches: Pick<Caches, "scaling" | "observeScaling">;
  readonly writer: Pick<ScalingWriter, "write" | "read">;
  readonly tiers: Tiers;
  readonly log: Logger;
}

/** The size that every pipe of a service has really reached: the last one that all had at once. */
export function reachedSize({ service }: ServicePlace, { caches }: Pick<ScalingDeps, "caches">): Size {
  const { effective } = provisioned(caches.scaling(service.namespace, service.id));
  if (effective) return effective;
  throw unavailable("The size of this service's pipes is not known yet. Try again shortly.");
}

/** How far the pipes of a service have come on their way to the size that was asked for last. */
export function scalingProgress(
  { service }: ServicePlace,
  { caches }: Pick<ScalingDeps, "caches">,
): Pick<CachedScaling, "progress" | "effective"> {
  return provisioned(caches.scaling(service.namespace, service.id));
}

/**
 * Asks for a size: in the normal case by exactly one call to the cluster.
 *
 * @returns the accepted size
 * @throws Problem 400, 409 if the state does not allow it, and then nothing has changed; 503 otherwise
 */
export async function requestSize(
  place: ServicePlace,
  size: Size,
  origin: Origin,
  { caches, writer, tiers, log }: ScalingDeps,
): Promise<Size> {
  const { organization, service } = place;
  requireWithinTier(size, organization.tier, tiers);
  const { from, written } = await changeObject({
    cached: caches.scaling(service.namespace, service.id),
    read: () => writer.read(service.namespace, service.id),
    attempt: async (target) => {
      const current = provisioned(target);
      requireChangeable(current);
      return { from: current.requested, written: await writer.write(current, size, origin) };
    },
    what: "this size",
  });
  caches.observeScaling(service.namespace, written);
  const { requestId, apiKey } = origin;
  const audit = { audit: "scaling", requestId, apiKey, organization: organization.id, service: service.id };
  log.info({ ...audit, from: from && describeSize(from), to: describeSize(size) }, "size accepted");
  return size;
}

function provisioned(scaling: CachedScaling | undefined): CachedScaling {
  if (scaling) return scaling;
  throw invalid(
    "No database pipe has been provisioned on this service yet: scaling is available once there is one.",
  );
}

function requireWithinTier(size: Size, tierName: string, tiers: Tiers): void {
  const tier = tiers.get(tierName);
  if (!tier) throw new Error(`the organization's tier, ${tierName}, is not one that this API was told of`);
  const { cpuMillicores, memoryGib } = tier.maximumSize;
  if (size.cpuMillicores <= cpuMillicores && size.memoryGib <= memoryGib) return;
  throw invalid(
    `The size is above what the organization's tier allows: replicaCpuMillicores at most ${cpuMillicores}, replicaMemoryGb at most ${memoryGib}.`,
  );
}

function requireChangeable({ suspended, metadata }: CachedScaling): void {
  if (suspended) {
    throw new Problem(
      409,
      "Scaling of this service is suspended: the size cannot be changed until it is resumed.",
    );
  }
  // What is written to an object on its way out would be lost with it.
  if (metadata.deletionTimestamp !== undefined) {
    throw unavailable("The service is being set up anew. Try again shortly.");
  }
}
