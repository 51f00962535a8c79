import type { Kind, Kinds } from "./history.ts";
import type { PipeRecord } from "./pipe-record.ts";
import type { ServiceRecord } from "./service-record.ts";

/** Place of an event in the history. */
export interface Moment {
  readonly version: bigint;
  readonly atMs: number;
}

/** A pipe, and its service. */
export interface JudgedPipe {
  readonly pipe: PipeRecord;
  readonly service: ServiceRecord;
}

/** Functions that the judges of all kinds share. */
export interface JudgeContext {
  /** The observed services by ID. */
  readonly services: ReadonlyMap<string, ServiceRecord>;
  readonly maxConcurrentRollouts: number;
  /** Returns the observed service that a Deployment belongs to. */
  readonly serviceFor: (deployment: Kinds["Deployment"]) => ServiceRecord | undefined;
  /** True if the event at this version is one of a period that was observed incompletely. */
  readonly isUnseen: (kind: Kind, version: bigint) => boolean;
  /** Records a write of the controller, which must hold the Lease. */
  readonly wrote: (kind: Kind, object: Kinds[Kind], detail?: string) => void;
  readonly fault: (object: Kinds[Kind], fault: string) => void;
}

/** Time in which a write that the controller had sent before an event still reaches the server. */
export const IN_FLIGHT_MS = 2000;
