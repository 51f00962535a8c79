import * as z from "zod";
import { cpuQuantity, memoryQuantity, parseQuantity } from "../../domain/quantity.ts";
import { formatSize, parseSize, type Size } from "../../domain/size.ts";
import type { Container } from "../../kube/objects.ts";

const amount = z.string().nullable();
const schema = z.object({
  requests: z.object({ cpu: amount, memory: amount }),
  limits: z.object({ cpu: amount.optional(), memory: amount }),
});

/** The fields that the controller sets, as a strategic merge patch has them: null for a field that is absent. */
export type Resources = z.infer<typeof schema>;

/** A size, or resources that the owner of a container chose and that make no size. */
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

/** Requests as Kubernetes takes them: a request that is absent equals the limit. */
export function effectiveRequests({
  resources,
}: Pick<Container, "resources">): Readonly<Record<string, string>> {
  return { ...resources?.limits, ...resources?.requests };
}

/** True if the container asks for the QoS class Guaranteed: its limits of CPU and memory equal its requests. */
export function isGuaranteed(container: Container): boolean {
  const requests = effectiveRequests(container);
  const limits = container.resources?.limits ?? {};
  return ["cpu", "memory"].every((resource) => {
    const [request, limit] = [requests[resource], limits[resource]];
    return request !== undefined && limit !== undefined && parseQuantity(request) === parseQuantity(limit);
  });
}

/** @param cpuLimit whether the CPU limit follows the request, which keeps the QoS class Guaranteed */
export function resourcesFor(allotment: Allotment, cpuLimit: boolean): Resources {
  if (!isSize(allotment)) return allotment;
  const amounts = { cpu: cpuQuantity(allotment), memory: memoryQuantity(allotment) };
  return { requests: amounts, limits: { ...(cpuLimit ? { cpu: amounts.cpu } : {}), memory: amounts.memory } };
}

/** For annotations: a size as {@link formatSize} writes it, anything else as JSON. */
export function formatAllotment(allotment: Allotment): string {
  return isSize(allotment) ? formatSize(allotment) : JSON.stringify(allotment);
}

/** `undefined` for none, and for one that somebody has damaged. */
export function parseAllotment(annotation: string | undefined): Allotment | undefined {
  if (annotation === undefined) return undefined;
  try {
    return parseSize(annotation) ?? schema.parse(JSON.parse(annotation));
  } catch {
    return undefined;
  }
}
