import type { Cluster } from "@pipe-scaling/local-cluster";
import { JobProcess } from "./job-process.ts";
import type { Job, JobDone } from "./load.ts";

/** The process that sends requests (load.ts). With two cores, it has one to itself. */
export type LoadGenerator = JobProcess<Job, JobDone>;

export function startLoadGenerator(cluster: Cluster): LoadGenerator {
  return new JobProcess<Job, JobDone>(cluster, "load", "load.ts");
}
