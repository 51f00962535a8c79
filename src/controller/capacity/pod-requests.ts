import { parseQuantity } from "../../domain/quantity.ts";
import type { PodSpec } from "../../kube/objects.ts";
import { effectiveRequests } from "../observe/resources.ts";

/** CPU in cores and memory in bytes, both in billionths (domain/quantity.ts). */
export interface Amounts {
  readonly cpu: bigint;
  readonly memory: bigint;
}

/**
 * The requests of a pod as the scheduler counts them: the containers and sidecars together, or what an init container
 * needs beside the sidecars that were started before it, whichever is more; and the overhead. Requests of the whole pod
 * replace those of its containers.
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

/** Zero for none. */
export function amountOf(quantity: string | undefined): bigint {
  return parseQuantity(quantity ?? "") ?? 0n;
}

function larger(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
