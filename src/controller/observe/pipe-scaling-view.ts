import type { PipeScaling, PipeScalingSpec, PipeScalingStatus } from "../../crd/pipe-scaling.ts";
import { REQUEST_ANNOTATION } from "../../crd/scaling-request.ts";
import type { Size } from "../../domain/size.ts";
import { type Identity, identityOf, type KubeObject } from "../../kube/objects.ts";
import { RETRY_ANNOTATION } from "../names.ts";

/** What is read of a PipeScaling. */
export interface PipeScalingView extends KubeObject {
  readonly metadata: Identity;
  readonly isBeingDeleted: boolean;
  readonly spec: PipeScalingSpec;
  readonly status: PipeScalingStatus;
  readonly requestAnnotation: string | undefined;
  readonly retryRequestedAtMs: number | undefined;
  /** A retry was asked for in words that are no time. */
  readonly isRetryMalformed: boolean;
}

export function toPipeScalingView({ metadata, spec, status }: KubeObject & PipeScaling): PipeScalingView {
  const retry = metadata.annotations?.[RETRY_ANNOTATION];
  const retryAtMs = Date.parse(retry ?? "");
  return {
    metadata: identityOf(metadata),
    isBeingDeleted: metadata.deletionTimestamp !== undefined,
    spec: spec ?? {},
    status: status ?? {},
    requestAnnotation: metadata.annotations?.[REQUEST_ANNOTATION],
    retryRequestedAtMs: Number.isNaN(retryAtMs) ? undefined : retryAtMs,
    isRetryMalformed: retry !== undefined && Number.isNaN(retryAtMs),
  };
}

/** The size that the spec asks for; `undefined` leaves it to the tier. */
export function requestedSize({ spec }: PipeScalingView): Size | undefined {
  const { replicaCpuMillicores: cpuMillicores, replicaMemoryGb: memoryGib } = spec;
  return cpuMillicores === undefined || memoryGib === undefined ? undefined : { cpuMillicores, memoryGib };
}
