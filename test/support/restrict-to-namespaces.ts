import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply, kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { accountName, type Component, clusterRoleName } from "./fixtures/shipped-account.ts";

interface Place {
  readonly cluster: Cluster;
  /** Namespace of the account. */
  readonly records: string;
}

/** Restricts a process's permissions in all namespaces to these namespaces, and waits until that is in effect. */
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
  const place = { cluster, records };
  await waitForRight(place, component, undefined, false);
  for (const namespace of namespaces) await waitForRight(place, component, namespace);
}

/** Waits until a process may, or may not, list PipeScalings in a namespace, or in all of them if none is given. */
export async function waitForRight(
  { cluster, records }: Place,
  component: Component,
  namespace: string | undefined,
  isExpected = true,
): Promise<void> {
  const where = namespace === undefined ? ["--all-namespaces"] : ["--namespace", namespace];
  const as = `--as=system:serviceaccount:${records}:${accountName(component)}`;
  const mayList = () =>
    kubectl(cluster, ["auth", "can-i", "list", "pipescalings", ...where, as]).then(
      () => true,
      () => false,
    );
  await waitFor(async () => (await mayList()) === isExpected, { what: "the permissions to take effect" });
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
