import { readContextNames } from "../kube/kubeconfig-files.ts";
import { option, variableOf } from "./option.ts";
import { namespaceName, nonEmptyText } from "./values.ts";

export const DEFAULT_RECORDS_NAMESPACE = "pipe-scaling-records";

/** The cluster, and the namespace of the records. */
export const clusterSettings = {
  kubeconfig: option(nonEmptyText.optional(), {
    placeholder: "file",
    description: "kubeconfig file; by default the kubeconfig of the user, or the service account of the pod",
    chart: false,
  }),
  namespace: option(namespaceName, {
    short: "-n",
    placeholder: "name",
    description: "namespace of the records: organizations, services, members and keys",
    default: DEFAULT_RECORDS_NAMESPACE,
    chart: false,
  }),
};

/** The cluster and the namespace for a command that a person runs. The options have the names that kubectl uses. */
export const commandClusterSettings = {
  kubeconfig: clusterSettings.kubeconfig,
  context: option(nonEmptyText.optional(), {
    placeholder: "name",
    description: "context of the kubeconfig; by default its current context",
    complete: (env) => readContextNames(env[variableOf("kubeconfig")] || undefined, env),
    chart: false,
  }),
  namespace: clusterSettings.namespace,
};
