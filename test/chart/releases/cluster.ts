import type { Cluster } from "@pipe-scaling/local-cluster";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import * as z from "zod";
import { GROUP, PLURAL } from "../../../src/crd/names.ts";
import type { AuditLog } from "../audit.ts";

/** The cluster of the suites that install releases. Read its properties in hooks and tests. */
export interface ReleaseCluster {
  readonly cluster: Cluster;
  /** The calls to its API server. */
  readonly audit: AuditLog;
}

const releases = z.array(z.object({ name: z.string(), namespace: z.string() }));

/** Removes all releases and the CRD, as in a new cluster. */
export async function removeReleases(cluster: Cluster): Promise<void> {
  const listed = await helm(["list", "--all-namespaces", "--output", "json"], cluster);
  for (const { name, namespace } of releases.parse(JSON.parse(listed))) {
    await helm(["uninstall", name, "--namespace", namespace, "--wait"], cluster);
  }
  await kubectl(cluster, ["delete", "crd", `${PLURAL}.${GROUP}`, "--ignore-not-found"]);
}
