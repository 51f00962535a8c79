import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply, untilEstablished } from "@pipe-scaling/local-cluster/kubectl";
import { crdManifest } from "../../src/crd/manifest.ts";
import type { Manifest } from "./apply.ts";

/** Installs the CRD of PipeScaling and others, and returns when the API server serves them. */
export async function installCrds(cluster: Cluster, ...others: readonly Manifest[]): Promise<void> {
  const crds = [crdManifest() as Manifest, ...others];
  await apply(cluster, crds);
  await untilEstablished(
    cluster,
    crds.map(({ metadata }) => metadata.name),
  );
}
