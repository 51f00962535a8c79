import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { accountName, type Component, clusterRoleName } from "./fixtures/shipped-account.ts";

interface Place {
  readonly cluster: Cluster;
  /** Namespace of the account. */
  readonly records: string;
}

/** Restricts a process's permissions in all namespaces to these namespaces. */
export async function restrictToNamespaces(
  component: Component,
  { cluster, records }: Place,
  namespaces: readonly string[],
): Promise<void> {
  const role = clusterRoleName(component, records);
  await kubectl(cluster, ["delete", "clusterrolebinding", role]);
  await apply(
    cluster,
    namespaces.map((namespace) => roleBindingIn(namespace, component, records)),
  );
}

/** Binds the process's account to its permissions in one namespace. */
export function roleBindingIn(namespace: string, component: Component, records: string): object {
  return {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "RoleBinding",
    metadata: { name: component, namespace },
    roleRef: {
      apiGroup: "rbac.authorization.k8s.io",
      kind: "ClusterRole",
      name: clusterRoleName(component, records),
    },
    subjects: [{ kind: "ServiceAccount", name: accountName(component), namespace: records }],
  };
}
