import * as z from "zod";
import { cpuQuantity, memoryQuantity } from "../../domain/quantity.ts";
import { formatSize, parseSize, type Size } from "../../domain/size.ts";
import type { Container } from "../../kube/objects.ts";

const amount = z.string().nullable();
const schema = z.object({
  requests: z.object({ cpu: amount, memory: amount }),
  limits: z.object({ memory: amount }),
});

/** The fields that we set, as a strategic merge patch sets them: null for one that is not there. */
export type Resources = z.infer<typeof schema>;

/** What a container has or is given: a size, or resources that its owner chose and that make none. */
export type Allotment = Size | Resources;

export function isSize(allotment: Allotment | undefined): allotment is Size {
  return allotment !== undefined && "cpuMillicores" in allotment;
}

export function resourcesOf({ resources }: Container): Resources {
  const { cpu = null, memory = null } = resources?.requests ?? {};
  return { requests: { cpu, memory }, limits: { memory: resources?.limits?.["memory"] ?? null } };
}

export function resourcesFor(allotment: Allotment): Resources {
  if (!isSize(allotment)) return allotment;
  const amounts = { cpu: cpuQuantity(allotment), memory: memoryQuantity(allotment) };
  return { requests: amounts, limits: { memory: amounts.memory } };
}

/** For annotations: a size as {@link formatSize} does it, anything else as JSON. */
export function formatAllotment(allotment: Allotment): string {
  return isSize(allotment) ? formatSize(allotment) : JSON.stringify(allotment);
}

/** `undefined` for none and for one that somebody has damaged. */
export function parseAllotment(annotation: string | undefined): Allotment | undefined {
  if (annotation === undefined) return undefined;
  try {
    return parseSize(annotation) ?? schema.parse(JSON.parse(annotation));
  } catch {
    return undefined;
  }
}
