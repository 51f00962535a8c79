import { OURS } from "../../domain/rollout-plan.ts";
import { BY_ROLLING, type Caches } from "../observe/caches.ts";
import { rolloutPhase, type Timing } from "./rollout-phase.ts";

/** Counts rollouts and rollbacks of the controller across all services. */
export function countRolling({ pipes }: Caches, timing: Timing): number {
  return pipes.by(BY_ROLLING, "yes").filter((pipe) => {
    const phase = rolloutPhase(pipe, timing);
    // Without its last rollout, the phase of a pipe does not tell who started the rollout.
    return OURS.includes(phase) || (!pipe.lastRollout && phase === "updating");
  }).length;
}
