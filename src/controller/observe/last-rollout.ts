import * as z from "zod";
import { FALLBACK_REASONS, type FallbackReason } from "../../crd/fallback-reasons.ts";
import { FAILURE_REASONS, failureReason } from "../../crd/reasons.ts";
import { LAST_INSTANT_MS } from "../../domain/instant.ts";
import { formatSize } from "../../domain/size.ts";
import { shared } from "../../kube/memoized.ts";
import { type Allotment, formatAllotment, parseAllotment, sharedSize, sizeOfAllotment } from "./resources.ts";

/** A codec between a text and a value. An invalid text is a validation error of its field. */
function textOf<T>(parse: (text: string) => T | undefined, format: (value: T) => string) {
  return z.codec(z.string(), z.custom<T>(), {
    decode: (text, { issues }) => {
      const value = parse(text);
      if (value === undefined) issues.push({ code: "custom", input: text });
      return value ?? z.NEVER;
    },
    encode: format,
  });
}

const size = textOf(sharedSize, formatSize);
const message = z.string();
// A clock may give fractions.
const timeMs = z.number().min(0).max(LAST_INSTANT_MS).overwrite(Math.floor);
const sharedText = z.string().overwrite(shared);
/** Only a flag that is set is written. */
const flag = z.codec(z.boolean().optional(), z.boolean(), {
  decode: (isSet) => isSet ?? false,
  encode: (isSet) => isSet || undefined,
});

/** Why a pipe is not resized in place. */
export interface Fallback {
  readonly reason: FallbackReason;
  readonly message: string;
}

/**
 * An invalid `lastGoodSize`, `inPlaceFailure` or `outOfMemory` counts as absent. Any other invalid field makes the
 * whole annotation invalid.
 */
const lastRollout = z.object({
  /**
   * The desired size at the time of the write; a rollback keeps it until all pods have another desired size. If a commit
   * was undone, the size that the template got again, unless its resources are not a valid size.
   */
  size,
  /** True if the pipe was returned from `size` to `lastGoodSize`, or adopted with resources other than `size`. */
  isRollback: flag,
  /** The reason for the rollback to `lastGoodSize`. */
  failure: z
    .object({
      reason: z.codec(z.string(), z.enum(FAILURE_REASONS), {
        decode: failureReason,
        encode: (reason) => reason,
      }),
      message,
    })
    .optional(),
  /** The size to which a rollback of `size` returns, or that an undone commit restores; absent if none is known. */
  lastGoodSize: textOf<Allotment>(parseAllotment, formatAllotment).optional().catch(undefined),
  /**
   * Start of the rollout, of the rollback or of the commit, or time of the adoption, in milliseconds since 1970. The
   * chart's policies expect it right after `lastGoodSize`.
   */
  startedAtMs: timeMs,
  /** Start of the resize of the running pods, in milliseconds since 1970; absent if the pods were replaced. */
  inPlaceStartedAtMs: timeMs.optional(),
  /**
   * A commit is in progress: the template follows the pods. Written when the commit begins, and removed when it ends.
   */
  isCommitting: z.boolean().optional(),
  /** The revision of all pods of a StatefulSet when the commit began. Pods of it may get the label of the next one. */
  committedRevision: sharedText.optional(),
  /** The commit holds no pods of a StatefulSet, because its owner keeps all of them from rollouts. */
  isUnheld: z.boolean().optional(),
  /**
   * Why a size was not applied in place: the last resize in place failed, or none was possible when the rollout began.
   * As a rule, that size is not tried in place again (failedBefore in in-place/problem.ts).
   */
  inPlaceFailure: z
    .object({
      size,
      reason: z.enum(FALLBACK_REASONS),
      message,
      atMs: timeMs,
      /** Revision of the pod template at the time of the failure. */
      revision: z.int().optional(),
    })
    .optional()
    .catch(undefined),
  /** Restarts of the container in all pods when the template began to follow them; absent without a resize in place. */
  restarts: z.int().optional(),
  /**
   * Containers of the service ran out of memory after the resize to `size` in place, so its pipes have `previous` again
   * until another size, or a retry, is requested. Each pipe that gets `previous` has the same record. If `size` is that
   * of a boost, and there was a record for the size after the boost, that is `alsoSize`.
   */
  outOfMemory: z
    .object({ size, alsoSize: size.optional(), previous: size, pipe: z.string(), message, atMs: timeMs })
    .optional()
    .catch(undefined),
  /**
   * The rollout of the applied size completed once, or none was needed, so it is not rolled back. Nothing else shows
   * this later, because a change by the owner can make the workload look as if the rollout never completed.
   */
  cameUp: flag,
  /**
   * Number of consecutive attempts with `size`; 0 if the pipe was adopted, or if `size` is the old size that it got
   * again by a rollback, or when a commit was undone.
   */
  attempts: z.int(),
  /** The service that the pipe belonged to at the time of the write. */
  serviceId: sharedText,
  /** The PipeScaling that `size` comes from, and its generation. */
  scalingUid: sharedText,
  scalingGeneration: z.int(),
  /** The API request for `size`, if any. */
  requestId: z.string().optional(),
  /** Generation of the workload after the patch; 0 if the annotation records no rollout. */
  generation: z.int(),
  /**
   * Revision of the pod template after the patch. A later one comes from the owner, or from the controller if it
   * replaced pods after a resize in place had failed.
   */
  revision: z.int(),
  /** Identifies the pod template without the size, if the workload does not show a number of its template. */
  template: sharedText.optional(),
  /** `progressedAtS` of the workload before the patch, in seconds since 1970; 0 for none. */
  progressedAtS: z.int(),
  /**
   * Desired replicas at the time of the patch. Those that the owner keeps from rollouts count only if they were resized
   * in place.
   */
  replicas: z.int(),
});

/** Binds the annotation to its workload, so that a copy on another workload is ignored. */
const binding = z.object({ version: z.literal(1), deploymentUid: z.string() });

/**
 * The last rollout, rollback or commit that the controller started on a pipe, or its adoption. The patch that starts it
 * also stores this in an annotation of the workload, so that a controller can go on after a crash of its predecessor.
 */
export type LastRollout = Readonly<z.output<typeof lastRollout>>;

/** Why a size was not applied in place. */
export type InPlaceFailure = NonNullable<LastRollout["inPlaceFailure"]>;

/** A size that the pipes of a service lost again because containers ran out of memory. */
export type OutOfMemory = NonNullable<LastRollout["outOfMemory"]>;

/** The chart's policies expect the version and the UID first. */
export function formatLastRollout(rollout: LastRollout, deploymentUid: string): string {
  const bound: z.input<typeof binding> = { version: 1, deploymentUid };
  return JSON.stringify({ ...bound, ...lastRollout.encode(rollout) });
}

/**
 * Returns `undefined` if there is no annotation, if it is malformed, or if it is that of another workload.
 *
 * @param deploymentUid UID of the workload that the annotation must name; any if it is absent
 */
export function parseLastRollout(
  annotation: string | undefined,
  deploymentUid?: string,
): LastRollout | undefined {
  if (annotation === undefined) return undefined;
  try {
    const json: unknown = JSON.parse(annotation);
    const bound = binding.parse(json);
    if (deploymentUid !== undefined && bound.deploymentUid !== deploymentUid) return undefined;
    return lastRollout.parse(json);
  } catch {
    // Someone edited it, so it counts as absent.
    return undefined;
  }
}

/**
 * The subject of the write of an annotation. If the annotation records that a rollout completed, the memory of writes
 * shows this even if the write fails. Each failure in place of a completed pipe, and the end of it, begins a new count.
 */
export function annotationSubject(rollout: LastRollout): string {
  const { size, cameUp, generation, startedAtMs, inPlaceFailure } = rollout;
  const subject = cameUp && generation > 0 ? `${startedAtMs} completed` : formatSize(size);
  return cameUp && inPlaceFailure ? `${subject}, not ${formatSize(inPlaceFailure.size)} in place` : subject;
}

/** The subject of the write that leaves the partition of a StatefulSet to its owner after a commit. */
export function partitionSubject(lastRollout: LastRollout | undefined): string {
  return `${lastRollout?.startedAtMs ?? 0} partition`;
}

/** True if the annotation records resources other than `size` that the pipe had already, or got again without a rollout. */
export function isOfOtherResources({ generation, isRollback }: LastRollout): boolean {
  return generation === 0 && isRollback;
}

/** The size or resources that the last rollout or rollback set; `undefined` if none are known. */
export function appliedSize(rollout: LastRollout | undefined): Allotment | undefined {
  const applied = rollout?.isRollback ? rollout.lastGoodSize : rollout?.size;
  return sizeOfAllotment(applied) ?? applied;
}
