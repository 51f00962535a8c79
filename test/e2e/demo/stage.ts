import type { Cluster } from "../../cluster/cluster.ts";
import type { Narration } from "./narration.ts";
import type { Observer } from "./observer.ts";

/** Where the story takes place. */
export interface Stage {
  readonly cluster: Cluster;
  readonly observer: Observer;
  readonly narration: Narration;
  readonly signal: AbortSignal;
}
