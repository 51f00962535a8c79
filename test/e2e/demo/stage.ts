import type { Cluster } from "@pipe-scaling/local-cluster";
import type { Narration } from "./narration.ts";
import type { Observer } from "./observer.ts";

/** The environment of a step. */
export interface Stage {
  readonly cluster: Cluster;
  readonly observer: Observer;
  readonly narration: Narration;
  readonly signal: AbortSignal;
}
