import { OURS } from "../../domain/rollout-plan.ts";
import { BY_ROLLING, type Caches } from "../observe/caches.ts";
import { isRollingOut } from "../observe/deployment-view.ts";
import { withLastRollout } from "../observe/observe.ts";
import type { WriteRecord } from "../observe/write-record.ts";
import { rolloutPhase, type Timing } from "./rollout-phase.ts";

export interface WrittenPipes {
  /** Keyed by uid of the Deployment. */
  readonly records: ReadonlyMap<string, WriteRecord>;
  /** Keys of Deployments that were stored without the annotation. */
  strippedKeys(): readonly string[];
}

/** Counts rollouts and rollbacks of the controller across all services. */
export function countRolling({ pipes }: Caches, timing: Timing, writes?: WrittenPipes): number {
  // If something removes the annotation of a pipe, only the write history shows its rollout.
  const stripped = (writes?.strippedKeys() ?? [])
    .flatMap((key) => pipes.get(key) ?? [])
    .filter((pipe) => !isRollingOut(pipe))
    .map((pipe) => withLastRollout(pipe, writes?.records.get(pipe.metadata.uid)));
  const rolling = [...pipes.by(BY_ROLLING, "yes"), ...stripped];
  return rolling.filter((pipe) => OURS.includes(rolloutPhase(pipe, timing))).length;
}
