import { option } from "./option.ts";
import { namespaceName, nonEmptyText } from "./values.ts";

export const DEFAULT_RECORDS_NAMESPACE = "pipe-scaling-records";

/** Where the cluster is, and where in it the records are. */
export const clusterSettings = {
  kubeconfig: option(nonEmptyText.optional(), {
    placeholder: "file",
    description:
      "the cluster and the credentials; without it the user's default, or in a pod its service account",
    chart: false,
  }),
  namespace: option(namespaceName, {
    placeholder: "name",
    description: "namespace of the records: organizations, services, members and keys",
    default: DEFAULT_RECORDS_NAMESPACE,
    chart: false,
  }),
};
