import * as z from "zod";
import { cpuQuantity, memoryQuantity, parseQuantity } from "../../domain/quantity.ts";
import { formatSize, parseSize, type Size } from "../../domain/size.ts";
import { memoized } from "../../kube/memoized.ts";
import type { Container } from "../../kube/objects.ts";

const amount = z.string().nullable();
const schema = z.object({
  requests: z.object({ cpu: amount, memory: amount }),
  limits: z.object({ cpu: amount.optional(), memory: amount }),
});

/** The fields that the controller sets, for a strategic merge patch: null for an absent field. */
export type Resources = z.infer<typeof schema>;

/** A size, or resources of the owner that are not a valid size. */
export type Allotment = Size | Resources;

export function isSize(allotment: Allotment | undefined): allotment is Size {
  return allotment !== undefined && "cpuMillicores" in allotment;
}

export function resourcesOf(container: Container): Resources {
  const { cpu = null, memory = null } = container.resources?.requests ?? {};
  const limits = container.resources?.limits ?? {};
  return {
    requests: { cpu, memory },
    limits: { ...(isGuaranteed(container) ? { cpu: limits["cpu"] } : {}), memory: limits["memory"] ?? null },
  };
}

/** Returns the requests with the default of Kubernetes: an absent request equals the limit. */
export function effectiveRequests({
  resources,
}: Pick<Container, "resources">): Readonly<Record<string, string>> {
  return { ...resources?.limits, ...resources?.requests };
}

/** Returns true if the container has the QoS class Guaranteed: its CPU and memory limits equal its requests. */
export function isGuaranteed(container: Container): boolean {
  const requests = effectiveRequests(container);
  const limits = container.resources?.limits ?? {};
  return ["cpu", "memory"].every((resource) => {
    const [request, limit] = [requests[resource], limits[resource]];
    return request !== undefined && limit !== undefined && parseQuantity(request) === parseQuantity(limit);
  });
}

/** @param cpuLimit whether the CPU limit follows the request, which preserves the QoS class Guaranteed */
export function resourcesFor(allotment: Allotment, cpuLimit: boolean): Resources {
  if (!isSize(allotment)) return allotment;
  const amounts = { cpu: cpuQuantity(allotment), memory: memoryQuantity(allotment) };
  return { requests: amounts, limits: { ...(cpuLimit ? { cpu: amounts.cpu } : {}), memory: amounts.memory } };
}

/** Formats for annotations: a size with {@link formatSize}, other resources as JSON. */
export function formatAllotment(allotment: Allotment): string {
  return isSize(allotment) ? formatSize(allotment) : JSON.stringify(allotment);
}

// Thousands of pipes have the same few sizes.
export const sharedSize = memoized(parseSize);

/** Returns `undefined` if the text is missing or invalid. */
export function parseAllotment(annotation: string | undefined): Allotment | undefined {
  if (annotation === undefined) return undefined;
  try {
    return sharedSize(annotation) ?? schema.parse(JSON.parse(annotation));
  } catch {
    return undefined;
  }
}
