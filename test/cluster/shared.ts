import { inject } from "vitest";
import { attachCluster, type Cluster } from "./cluster.ts";

/**
 * The cluster that all test files of the project "cluster" share. Work in a
 * namespace of your own, and leave the components alone: whoever wants to kill
 * one starts a cluster for it (startCluster).
 */
export function sharedCluster(): Promise<Cluster> {
  return attachCluster(inject("cluster").name);
}
