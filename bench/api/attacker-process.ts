import type { Cluster } from "@pipe-scaling/local-cluster";
import type { AttackDone, AttackJob } from "./attacker.ts";
import { JobProcess } from "./job-process.ts";

/** The process that runs the attacks (attacker.ts), so that its CPU time does not delay the healthy client. */
export type Attacker = JobProcess<AttackJob, AttackDone>;

export function startAttacker(cluster: Cluster): Attacker {
  return new JobProcess<AttackJob, AttackDone>(cluster, "attacker", "attacker.ts");
}
