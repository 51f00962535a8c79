import * as z from "zod";
import type { Boost } from "../domain/boost.ts";
import { parseInstant } from "../domain/instant.ts";
import type { Size } from "../domain/size.ts";
import { MAX_WORD_LENGTH } from "./fields.ts";
import { GROUP } from "./names.ts";

/**
 * Annotation of a PipeScaling with the API request that set its size. It includes the size, so that a later edit with
 * kubectl is not attributed to an old request.
 */
export const REQUEST_ANNOTATION = `${GROUP}/scaling-request`;

/** Like {@link REQUEST_ANNOTATION}, for the boost. */
export const BOOST_REQUEST_ANNOTATION = `${GROUP}/boost-request`;

/** Longest annotation that is parsed; our own have about 230 characters. */
const MAX_LENGTH = 1000;

const schema = z.object({
  requestId: z.string().max(MAX_WORD_LENGTH),
  /** Resource ID of the API key; never the key ID. */
  apiKey: z.string(),
  requestedAt: z.string(),
  replicaCpuMillicores: z.int(),
  replicaMemoryGb: z.int(),
  /** End of a boost; absent from other requests. */
  until: z.string().optional(),
});

export type ScalingRequest = z.infer<typeof schema>;

export function formatScalingRequest(request: ScalingRequest): string {
  return JSON.stringify(request);
}

/** Returns the request for this size, or `undefined` if the size did not come from a request. */
export function scalingRequestFor(size: Size, annotation: string | undefined): ScalingRequest | undefined {
  const request = annotation === undefined ? undefined : parse(annotation);
  const matches =
    request?.replicaCpuMillicores === size.cpuMillicores && request.replicaMemoryGb === size.memoryGib;
  return matches ? request : undefined;
}

/** Returns the request for this boost, or `undefined` if it did not come from a request. */
export function boostRequestFor(
  { size, untilMs }: Boost,
  annotation: string | undefined,
): ScalingRequest | undefined {
  const request = scalingRequestFor(size, annotation);
  return parseInstant(request?.until) === untilMs ? request : undefined;
}

function parse(annotation: string): ScalingRequest | undefined {
  if (annotation.length > MAX_LENGTH) return undefined;
  try {
    return schema.safeParse(JSON.parse(annotation)).data;
  } catch {
    // Someone edited the annotation, so the size is not attributed to a request.
    return undefined;
  }
}
