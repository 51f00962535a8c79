import * as z from "zod";
import { formatSize, parseSize, type Size } from "../../domain/size.ts";

/**
 * The last time that a pipe was given a size: kept on the Deployment by the very patch that gives it, so
 * that a controller that starts after a crash knows what the one before it did.
 */
export interface LastRollout {
  readonly size: Size;
  /** When, by the controller's wall clock, in milliseconds since 1970. */
  readonly startedAtMs: number;
  /** The PipeScaling that the size came from, and its generation. */
  readonly scalingUid: string;
  readonly generation: number;
  /** The API request that asked for it, if one did. */
  readonly requestId: string | undefined;
  /** The generation of the Deployment that this made: a later one is somebody else's doing. */
  readonly pipeGeneration: number;
  /** How often in a row this size was tried, this time included. */
  readonly attempts: number;
}

const schema = z.object({
  size: z.string(),
  startedAt: z.iso.datetime(),
  scalingUid: z.string(),
  generation: z.int(),
  requestId: z.string().optional(),
  pipeGeneration: z.int().default(0),
  attempts: z.int().default(1),
});

export function formatLastRollout(attempt: LastRollout): string {
  const { size, startedAtMs, ...rest } = attempt;
  const startedAt = new Date(startedAtMs).toISOString();
  return JSON.stringify({ size: formatSize(size), startedAt, ...rest });
}

/** `undefined` for none and for one that somebody has damaged: then it counts as never tried. */
export function parseLastRollout(annotation: string | undefined): LastRollout | undefined {
  if (annotation === undefined) return undefined;
  try {
    const { size: text, startedAt, ...rest } = schema.parse(JSON.parse(annotation));
    const size = parseSize(text);
    return size && { size, startedAtMs: Date.parse(startedAt), requestId: undefined, ...rest };
  } catch {
    return undefined;
  }
}
