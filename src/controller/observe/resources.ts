import * as z from "zod";
import { amountOf, effectiveRequests, isGuaranteed } from "../../capacity/pod-requests.ts";
import {
  cpuQuantity,
  gibIn,
  memoryQuantity,
  millicoresIn,
  sameQuantity,
  sizeOfQuantities,
} from "../../domain/quantity.ts";
import { formatSize, parseSize, type Size } from "../../domain/size.ts";
import { memoized } from "../../kube/memoized.ts";
import type { Container } from "../../kube/pods.ts";

const amount = z.string().nullable();
const schema = z.object({
  requests: z.object({ cpu: amount, memory: amount }),
  limits: z.object({ cpu: amount.optional(), memory: amount }),
});

/**
 * The fields that the controller sets, for a strategic merge patch: null for an absent field. An absent `limits.cpu` is
 * not set.
 */
export type Resources = z.infer<typeof schema>;

/** Any of these fields. An absent one is neither compared nor set. */
export type SomeResources = { readonly [each in keyof Resources]: Partial<Resources[each]> };

/** A size, or resources of the owner that are not a valid size. */
export type Allotment = Size | Resources;

export function isSize(allotment: Allotment | SomeResources | undefined): allotment is Size {
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

/**
 * Returns the size of a container; `undefined` unless its memory limit equals its memory request, in whole GiB, and its
 * CPU request is in whole millicores. As in Kubernetes, an absent request equals the limit.
 */
export function sizeOf(container: { readonly resources?: Container["resources"] }): Size | undefined {
  const { cpu, memory } = effectiveRequests(container);
  return sizeOfAmounts(cpu, memory, container.resources?.limits?.["memory"]);
}

// Thousands of pipes have the same few sizes.
const sizeOfAmounts = memoized((cpu?: string, memory?: string, memoryLimit?: string) => {
  const limit = sizeOfQuantities(cpu, memoryLimit);
  const request = sizeOfQuantities(cpu, memory);
  return limit?.memoryGib === request?.memoryGib ? request : undefined;
});
export const sharedSize = memoized(parseSize);

/** The size of an allotment, whatever its form; `undefined` if its resources are not a valid size. */
export function sizeOfAllotment(allotment: Allotment | undefined): Size | undefined {
  if (allotment === undefined || isSize(allotment)) return allotment;
  const { requests, limits } = allotment;
  return sizeOf({ resources: { requests: withoutNulls(requests), limits: withoutNulls(limits) } });
}

function withoutNulls(amounts: Readonly<Record<string, string | null | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).flatMap(([key, value]) => (value ? [[key, value]] : [])));
}

/**
 * Returns the resources of a container whose size is not in the form that the controller writes: without a request, or
 * with memory in another unit. To Kubernetes, the same size in another form is another template, which no pod has. Only
 * Deployments compare amounts by their value, and to them, too, an absent request is another template.
 *
 * @returns `undefined` if the size is in the controller's form
 */
export function otherFormOf(container: Container, size: Size): Resources | undefined {
  const own = resourcesOf(container);
  const memory = memoryQuantity(size);
  // The API server stores each amount of CPU in one form.
  const isSame = own.requests.cpu !== null && own.requests.memory === memory && own.limits.memory === memory;
  return isSame ? undefined : own;
}

/** @param cpuLimit whether the CPU limit follows the request, which preserves the QoS class Guaranteed */
export function resourcesFor(allotment: Allotment, cpuLimit: boolean): Resources {
  if (!isSize(allotment)) return allotment;
  const amounts = { cpu: cpuQuantity(allotment), memory: memoryQuantity(allotment) };
  return { requests: amounts, limits: { ...(cpuLimit ? { cpu: amounts.cpu } : {}), memory: amounts.memory } };
}

/**
 * The resources that a template gives to its pods. As in Kubernetes, an absent request equals the limit. Any other amount
 * that the template lacks may come from a LimitRange or a webhook, so pods keep it.
 */
export function resourcesOfPods({ requests, limits }: Resources): SomeResources {
  return {
    requests: withoutNulls({
      cpu: requests.cpu ?? limits.cpu,
      memory: requests.memory ?? limits.memory,
    }),
    limits: withoutNulls(limits),
  };
}

/** CPU and memory in millicores and GiB with fractions. */
export type Amounts = Size;

/**
 * The CPU request, or the CPU limit if there is no request, as in Kubernetes; and the larger one of the memory request
 * and limit. A size sets both to the same amount. If that were below the present limit, a pipe that uses what it is
 * allowed to use could be killed.
 *
 * @param cpuLimitMillicores the CPU limit, unless the resources have it
 */
export function amountsIn({ requests, limits }: Resources, cpuLimitMillicores = 0): Amounts {
  const cpuLimit = limits.cpu === undefined ? cpuLimitMillicores : millicoresIn(limits.cpu);
  return {
    cpuMillicores: requests.cpu === null ? cpuLimit : millicoresIn(requests.cpu),
    memoryGib: Math.max(gibIn(requests.memory), gibIn(limits.memory)),
  };
}

/** Formats for annotations and the memory of writes: a size with {@link formatSize}, other resources as JSON. */
export function formatAllotment(allotment: Allotment | SomeResources): string {
  return isSize(allotment) ? formatSize(allotment) : JSON.stringify(allotment);
}

/** Returns `undefined` if the text is invalid. */
export function parseAllotment(text: string): Allotment | undefined {
  try {
    return sharedSize(text) ?? schema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** In billionths of a byte; 0 without a limit. */
export function memoryLimitOf(resources: Container["resources"] | SomeResources): bigint {
  return amountOf(resources?.limits?.["memory"] ?? undefined);
}

/** Returns true if a container has these requests and limits. */
export function hasResources(resources: Container["resources"], target: SomeResources): boolean {
  const { requests, limits } = target;
  return hasAmounts(resources?.requests, requests) && hasAmounts(resources?.limits, limits);
}

function hasAmounts(
  amounts: Readonly<Record<string, string>> | undefined,
  { cpu, memory }: SomeResources["limits"],
): boolean {
  return (
    (cpu === undefined || isSameQuantity(amounts?.["cpu"], cpu)) &&
    (memory === undefined || isSameQuantity(amounts?.["memory"], memory))
  );
}

/** Both `undefined` and `null` stand for an absent quantity. */
export function isSameQuantity(quantity: string | undefined, other: string | null): boolean {
  if (quantity === undefined || other === null) return (quantity ?? null) === other;
  return quantity === other || sameQuantity(quantity, other);
}
