import * as z from "zod";
import type { Size } from "../domain/size.ts";
import { GROUP } from "./names.ts";

/**
 * Annotation of a PipeScaling that says which API request its size came with. It carries the size too, so
 * that a later edit by kubectl is not credited to an old request.
 */
export const REQUEST_ANNOTATION = `${GROUP}/scaling-request`;

const schema = z.object({
  requestId: z.string(),
  /** Resource id of the API key; never the key id. */
  apiKey: z.string(),
  requestedAt: z.string(),
  replicaCpuMillicores: z.int(),
  replicaMemoryGb: z.int(),
});

export type ScalingRequest = z.infer<typeof schema>;

export function formatScalingRequest(request: ScalingRequest): string {
  return JSON.stringify(request);
}

/** The request behind this size, or `undefined` where the size came by another way. */
export function scalingRequestFor(size: Size, annotation: string | undefined): ScalingRequest | undefined {
  const request = annotation === undefined ? undefined : parse(annotation);
  const matches =
    request?.replicaCpuMillicores === size.cpuMillicores && request.replicaMemoryGb === size.memoryGib;
  return matches ? request : undefined;
}

function parse(annotation: string): ScalingRequest | undefined {
  try {
    return schema.safeParse(JSON.parse(annotation)).data;
  } catch {
    // A person's edit; then nobody is credited.
    return undefined;
  }
}
