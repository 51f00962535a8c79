import { OURS } from "../../domain/rollout-plan.ts";
import { BY_ROLLING, type Caches } from "../observe/caches.ts";
import { rolloutPhase, type Timing } from "./rollout-phase.ts";

/** Rollouts and rollbacks of the controller over all services. */
export function countRolling(caches: Caches, timing: Timing): number {
  const rolling = caches.pipes.by(BY_ROLLING, "yes");
  return rolling.filter((pipe) => OURS.includes(rolloutPhase(pipe, timing))).length;
}
