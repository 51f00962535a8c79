import { describeSize, type Size } from "../domain/size.ts";
import type { Tiers } from "../domain/tier.ts";
import type { Logger } from "../telemetry/log.ts";
import type { CachedScaling } from "./cached-objects.ts";
import type { Caches } from "./caches.ts";
import { isOther, refusal } from "./cluster-refusal.ts";
import type { ServicePlace } from "./places.ts";
import { invalid, Problem, unavailable } from "./problem.ts";
import type { Origin, ScalingWriter } from "./scaling-writer.ts";

/** How often a write is tried on objects that turn out to be others by then. */
const ATTEMPTS = 3;

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
  let target = caches.scaling(service.namespace, service.id);
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const current = provisioned(target);
    requireAllowed(size, current, organization.tier, tiers);
    try {
      const written = await writer.write(current, size, origin);
      caches.observeScaling(service.namespace, written);
      const { requestId, apiKey } = origin;
      const audit = {
        audit: "scaling",
        requestId,
        apiKey,
        organization: organization.id,
        service: service.id,
      };
      const from = current.requested ? describeSize(current.requested) : undefined;
      log.info({ ...audit, from, to: describeSize(size) }, "size accepted");
      return size;
    } catch (error) {
      if (!isOther(error)) throw refusal(error, "this size");
    }
    target = await writer.read(service.namespace, service.id).catch((error: unknown) => {
      throw refusal(error, "this size");
    });
  }
  throw unavailable("The service is being changed by others at the same time. Try again shortly.");
}

function provisioned(scaling: CachedScaling | undefined): CachedScaling {
  if (scaling) return scaling;
  throw invalid(
    "No database pipe has been provisioned on this service yet: scaling is available once there is one.",
  );
}

function requireAllowed(size: Size, current: CachedScaling, tierName: string, tiers: Tiers): void {
  const tier = tiers.get(tierName);
  if (!tier) throw new Error(`the organization's tier, ${tierName}, is not one that this API was told of`);
  const { cpuMillicores, memoryGib } = tier.maximumSize;
  if (size.cpuMillicores > cpuMillicores || size.memoryGib > memoryGib) {
    throw invalid(
      `The size is above what the organization's tier allows: replicaCpuMillicores at most ${cpuMillicores}, replicaMemoryGb at most ${memoryGib}.`,
    );
  }
  if (current.suspended) {
    throw new Problem(
      409,
      "Scaling of this service is suspended: the size cannot be changed until it is resumed.",
    );
  }
  // What is written to an object on its way out would be lost with it.
  if (current.metadata.deletionTimestamp !== undefined) {
    throw unavailable("The service is being set up anew. Try again shortly.");
  }
}
