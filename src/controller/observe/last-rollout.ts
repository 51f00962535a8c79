import * as z from "zod";
import { type FailureReason, failureReason } from "../../crd/reasons.ts";
import { formatSize, type Size } from "../../domain/size.ts";
import { memoized } from "../../kube/memoized.ts";
import { type Allotment, formatAllotment, parseAllotment, sharedSize } from "./resources.ts";

/**
 * The last rollout that the controller started on a pipe. It is stored in an annotation of the Deployment by the patch
 * that starts the rollout, so that a controller can continue after a crash of its predecessor.
 */
export interface LastRollout {
  /** The size that was requested; a rollback keeps it. */
  readonly size: Size;
  /** True if the pipe was returned from `size` to `lastGoodSize`. */
  readonly isRollback: boolean;
  /** The reason for the rollback to `lastGoodSize`. */
  readonly failure?: { readonly reason: FailureReason; readonly message: string } | undefined;
  /** The last size that finished rolling out before `size` was applied; absent if none is known. */
  readonly lastGoodSize?: Allotment | undefined;
  /** Start of the rollout or of the rollback, in milliseconds since 1970. */
  readonly startedAtMs: number;
  /** Start of the resize of the running pods; absent if the pods were replaced. */
  readonly inPlaceStartedAtMs?: number | undefined;
  /** Number of consecutive attempts with `size`; 0 if the pipe had it before the controller wrote anything. */
  readonly attempts: number;
  /** The service that the pipe belonged to. */
  readonly serviceId: string;
  /** The PipeScaling that `size` comes from, and its generation. */
  readonly scalingUid: string;
  readonly scalingGeneration: number;
  /** The API request for `size`, if any. */
  readonly requestId?: string | undefined;
  /** Generation of the Deployment after the patch, which identifies the rollout. 0 if nothing was rolled out. */
  readonly generation: number;
  /** Revision of the pod template after the patch; a later revision is the owner's. */
  readonly revision: number;
  /** `lastUpdateTime` of the condition Progressing before the patch, in seconds since 1970; 0 for none. */
  readonly progressedAtS: number;
  /** Desired replicas at the time of the patch. */
  readonly replicas: number;
}

/** The last rollout as a patch of the controller wrote it. */
export interface WrittenRollout {
  readonly annotation: string;
  readonly rollout: LastRollout;
}

const schema = z.object({
  version: z.literal(1),
  deploymentUid: z.string(),
  size: z.string(),
  isRollback: z.boolean().default(false),
  failure: z.object({ reason: z.string().transform(failureReason), message: z.string() }).optional(),
  lastGoodSize: z.string().optional(),
  startedAt: z.iso.datetime(),
  inPlaceStartedAt: z.iso.datetime().optional(),
  attempts: z.int(),
  serviceId: z.string(),
  scalingUid: z.string(),
  scalingGeneration: z.int(),
  requestId: z.string().optional(),
  generation: z.int(),
  revision: z.int(),
  progressedAtS: z.int(),
  replicas: z.int(),
});

/** @param deploymentUid binds the annotation to its Deployment, so that a copy on another Deployment is ignored */
export function formatLastRollout(rollout: LastRollout, deploymentUid: string): string {
  const { size, isRollback, lastGoodSize, startedAtMs, inPlaceStartedAtMs } = rollout;
  const isInPlace = inPlaceStartedAtMs !== undefined;
  return JSON.stringify({
    version: 1,
    deploymentUid,
    size: formatSize(size),
    isRollback: isRollback ? true : undefined,
    failure: rollout.failure,
    lastGoodSize: lastGoodSize ? formatAllotment(lastGoodSize) : undefined,
    startedAt: new Date(startedAtMs).toISOString(),
    inPlaceStartedAt: isInPlace ? new Date(inPlaceStartedAtMs).toISOString() : undefined,
    attempts: rollout.attempts,
    serviceId: rollout.serviceId,
    scalingUid: rollout.scalingUid,
    scalingGeneration: rollout.scalingGeneration,
    requestId: rollout.requestId,
    generation: rollout.generation,
    revision: rollout.revision,
    progressedAtS: rollout.progressedAtS,
    replicas: rollout.replicas,
  } satisfies z.input<typeof schema>);
}

/**
 * `undefined` for none, for a damaged one, and for the annotation of another Deployment.
 *
 * @param deploymentUid of the Deployment that it must be about; without it, of any
 */
export function parseLastRollout(
  annotation: string | undefined,
  deploymentUid?: string,
): LastRollout | undefined {
  if (annotation === undefined) return undefined;
  try {
    const parsed = schema.parse(JSON.parse(annotation));
    // Every view of a pipe has one, and copying the rest of the properties would create more objects.
    const { startedAt, inPlaceStartedAt } = parsed;
    const size = sharedSize(parsed.size);
    if (!size || (deploymentUid !== undefined && parsed.deploymentUid !== deploymentUid)) return undefined;
    return {
      size,
      isRollback: parsed.isRollback,
      failure: parsed.failure,
      lastGoodSize: parseAllotment(parsed.lastGoodSize),
      startedAtMs: Date.parse(startedAt),
      inPlaceStartedAtMs: inPlaceStartedAt === undefined ? undefined : Date.parse(inPlaceStartedAt),
      attempts: parsed.attempts,
      serviceId: shared(parsed.serviceId),
      scalingUid: shared(parsed.scalingUid),
      scalingGeneration: parsed.scalingGeneration,
      requestId: parsed.requestId,
      generation: parsed.generation,
      revision: parsed.revision,
      progressedAtS: parsed.progressedAtS,
      replicas: parsed.replicas,
    };
  } catch {
    // Someone edited it, so the pipe is treated as new to the controller.
    return undefined;
  }
}

// The pipes of a service usually come one after the other.
const shared = memoized((text: string) => text);

/** The size or resources that the last rollout or rollback set. */
export function appliedSize(rollout: LastRollout | undefined): Allotment | undefined {
  return rollout?.isRollback ? rollout.lastGoodSize : rollout?.size;
}
