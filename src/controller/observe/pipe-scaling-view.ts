import { CONTROLLER_FIELD_MANAGER, IGNORE_WINDOW_ANNOTATION } from "../../crd/names.ts";
import type { PipeScaling, PipeScalingSpec, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import {
  BOOST_REQUEST_ANNOTATION,
  boostRequestFor,
  REQUEST_ANNOTATION,
  type ScalingRequest,
  scalingRequestFor,
} from "../../crd/scaling-request.ts";
import { boostIn, sizeIn } from "../../crd/size-fields.ts";
import { type Boost, boostAt } from "../../domain/boost.ts";
import { parseInstant } from "../../domain/instant.ts";
import type { Size } from "../../domain/size.ts";
import { managersOf } from "../../kube/managers.ts";
import { type Identity, identityOf, isBeingDeleted, type KubeObject } from "../../kube/objects.ts";
import { RETRY_ANNOTATION } from "../names.ts";

/** The fields of a PipeScaling that the controller uses. */
export interface PipeScalingView extends KubeObject {
  readonly metadata: Identity;
  readonly isBeingDeleted: boolean;
  readonly spec: PipeScalingSpec;
  readonly status: PipeScalingStatus;
  /** The controller has set the size, or none, and no size or boost was requested since then. */
  readonly isUnrequested: boolean;
  readonly requestAnnotation: string | undefined;
  readonly boostRequestAnnotation: string | undefined;
  readonly retryRequestedAtMs: number | undefined;
  /** Until this time, rollouts also start outside the rollout window. */
  readonly windowIgnoredUntilMs: number | undefined;
  /** Names of annotations whose value is not a valid time. */
  readonly malformedAnnotations: readonly string[];
}

export function toPipeScalingView({ metadata, spec, status }: KubeObject & PipeScaling): PipeScalingView {
  const retry = timeIn(metadata, RETRY_ANNOTATION);
  const ignoreWindow = timeIn(metadata, IGNORE_WINDOW_ANNOTATION);
  return {
    metadata: identityOf(metadata),
    isBeingDeleted: isBeingDeleted(metadata),
    spec: spec ?? {},
    status: status ?? {},
    isUnrequested: isUnwritten(metadata, spec),
    requestAnnotation: metadata.annotations?.[REQUEST_ANNOTATION],
    boostRequestAnnotation: metadata.annotations?.[BOOST_REQUEST_ANNOTATION],
    retryRequestedAtMs: retry.ms,
    windowIgnoredUntilMs: ignoreWindow.ms,
    malformedAnnotations: [retry, ignoreWindow].flatMap(({ malformed }) => malformed ?? []),
  };
}

/** The fields that request a size. The others, such as `suspend`, say only whether and how pipes are resized. */
const SIZE_FIELDS = ["f:replicaCpuMillicores", "f:replicaMemoryGb", "f:boost"].map((field) => [
  "f:spec",
  field,
]);

/**
 * True if only the controller has written a size. A merge patch that repeats the same values is not recorded, but a
 * server-side apply is. A size that was removed has no manager, and counts as written. Only the first generation shows
 * that there never was one.
 */
function isUnwritten(
  { generation, managedFields }: KubeObject["metadata"],
  spec: PipeScalingSpec = {},
): boolean {
  const neverHadSize = generation === 1 && sizeIn(spec) === undefined;
  const managers = managersOf(managedFields, neverHadSize ? [["f:spec"]] : SIZE_FIELDS);
  return managers.length === 1 && managers[0] === CONTROLLER_FIELD_MANAGER;
}

/** Parses the time in an annotation. `malformed`: the name of the annotation if its value is not a valid time. */
function timeIn(
  { annotations }: KubeObject["metadata"],
  name: string,
): { readonly ms: number | undefined; readonly malformed?: string } {
  const text = annotations?.[name];
  const ms = parseInstant(text);
  if (!Number.isNaN(ms)) return { ms };
  return { ms: undefined, ...(text === undefined ? {} : { malformed: name }) };
}

/** The size in the spec; `undefined` for the default of the tier. */
export function requestedSize({ spec }: PipeScalingView): Size | undefined {
  return sizeIn(spec);
}

/** The boost in the spec that is in effect at a time. */
export function activeBoost({ spec }: PipeScalingView, nowMs: number): Boost | undefined {
  return boostAt(boostIn(spec), nowMs);
}

/**
 * The API request for the boost, or else for the size; `undefined` if that did not come from a request.
 *
 * @param boost only while it is in effect
 * @param size the desired size, for a spec without a size
 */
export function requestOf(
  scaling: PipeScalingView,
  boost: Boost | undefined,
  size?: Size,
): ScalingRequest | undefined {
  if (boost) return boostRequestFor(boost, scaling.boostRequestAnnotation);
  const requested = requestedSize(scaling) ?? size;
  return requested && scalingRequestFor(requested, scaling.requestAnnotation);
}
