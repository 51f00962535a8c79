import type { Cluster } from "@pipe-scaling/local-cluster";
import { helm } from "@pipe-scaling/local-cluster/helm";
import { apply, untilEstablished } from "@pipe-scaling/local-cluster/kubectl";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { GROUP, PLURAL } from "../../src/crd/names.ts";
import { CHART } from "./path.ts";

/** Pods of the local cluster are simulated, so no image is pulled. */
const IMAGE = "registry.example.com/pipe-scaling-operator";
const RELEASE = "pipe-scaling-operator";
const SYSTEM_NAMESPACE = "pipe-scaling-system";

/** The chart's default namespace for records. */
export const RECORDS_NAMESPACE = "pipe-scaling-records";

/** Installs the chart on a local cluster as an administrator does, for pipes in these namespaces. */
export async function install(
  cluster: Cluster,
  pipeNamespaces: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const namespaces = pipeNamespaces.map((name) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name },
  }));
  await apply(cluster, namespaces);
  const values = `image.repository=${IMAGE},pipes.namespaces={${pipeNamespaces.join(",")}},api.tls.enabled=false`;
  const where = ["--namespace", SYSTEM_NAMESPACE, "--create-namespace"];
  await helm(["install", RELEASE, CHART, ...where, "--set", values], cluster);
  await untilEstablished(cluster, [`${PLURAL}.${GROUP}`], signal ? { signal } : {});
}

/** Paths of kubeconfigs. */
export interface Accounts {
  readonly api: string;
  readonly controller: string;
}

/** Writes kubeconfigs with which the two processes act as the ServiceAccounts of their pods. */
export async function accounts(cluster: Cluster): Promise<Accounts> {
  const kubeconfig = (component: keyof Accounts) =>
    serviceAccountKubeconfig(cluster, SYSTEM_NAMESPACE, `${RELEASE}-${component}`);
  return { api: await kubeconfig("api"), controller: await kubeconfig("controller") };
}
