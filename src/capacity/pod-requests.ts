import { parseQuantity, sameQuantity } from "../domain/quantity.ts";
import type { Container, PodSpec } from "../kube/pods.ts";

/** CPU in billionths of cores and memory in billionths of bytes (domain/quantity.ts). */
export interface Amounts {
  readonly cpu: bigint;
  readonly memory: bigint;
}

/**
 * Computes the requests of a pod as the scheduler does: the maximum of (a) all containers and sidecars and (b) each
 * init container with the sidecars that start before it, plus the overhead. Pod-level requests replace those of the
 * containers.
 */
export function podRequests(spec: PodSpec): Amounts {
  return { cpu: requestOf(spec, "cpu"), memory: requestOf(spec, "memory") };
}

function requestOf(
  { containers, initContainers = [], resources, overhead }: PodSpec,
  resource: keyof Amounts,
): bigint {
  let sidecars = 0n;
  let starting = 0n;
  for (const container of initContainers) {
    const request = amountOf(effectiveRequests(container)[resource]);
    starting = larger(starting, sidecars + request);
    if (container.restartPolicy === "Always") sidecars += request;
  }
  const running = containers.reduce(
    (sum, container) => sum + amountOf(effectiveRequests(container)[resource]),
    sidecars,
  );
  const ofPod = resources?.requests?.[resource];
  const requested = ofPod === undefined ? larger(running, starting) : amountOf(ofPod);
  return requested + amountOf(overhead?.[resource]);
}

/** Parses a quantity to billionths; 0 if it is missing or invalid. */
export function amountOf(quantity: string | undefined): bigint {
  return parseQuantity(quantity ?? "") ?? 0n;
}

export function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** Returns the requests with the default of Kubernetes: an absent request equals the limit. */
export function effectiveRequests({
  resources,
}: {
  readonly resources?: Container["resources"] | undefined;
}): Readonly<Record<string, string>> {
  return { ...resources?.limits, ...resources?.requests };
}

/** Returns true if the container allows the QoS class Guaranteed: its CPU and memory limits equal its requests. */
export function isGuaranteed(container: Container): boolean {
  const requests = effectiveRequests(container);
  const limits = container.resources?.limits ?? {};
  return ["cpu", "memory"].every((resource) => {
    const [request, limit] = [requests[resource], limits[resource]];
    return request !== undefined && limit !== undefined && sameQuantity(request, limit);
  });
}
