import { inject } from "vitest";
import { attachCluster, type Cluster } from "./cluster.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Provided by the global setup that starts the shared cluster. */
    cluster: { name: string };
  }
}

/**
 * The cluster that all test files of a run share. Each file uses its own namespace. A test that kills components starts
 * its own cluster.
 */
export function sharedCluster(): Promise<Cluster> {
  return attachCluster(inject("cluster").name);
}
