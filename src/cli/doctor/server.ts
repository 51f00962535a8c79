import { isCode, KubeApiError, KubeUnreachableError } from "../../kube/errors.ts";
import type { Cluster } from "./cluster.ts";
import { error, ok, type Result } from "./result.ts";

/** Equals `kubeVersion` of the chart: older servers do not support some rules of the CRD. */
const MIN_MINOR = 30;

/** Checks the version of the API server. Throws if it cannot be reached. */
export async function checkServer({ version, options }: Cluster): Promise<Result[]> {
  const { major, minor, gitVersion } = await version();
  // Vendors append to it: "31+".
  const isSupported = major === "1" && Number.parseInt(minor, 10) >= MIN_MINOR;
  return [
    isSupported
      ? ok(`${options.client.server} is reachable and runs Kubernetes ${gitVersion}.`)
      : error(
          `The cluster runs Kubernetes ${gitVersion}, but the CRD needs 1.${MIN_MINOR} or later.`,
          "Upgrade the control plane of the cluster.",
        ),
  ];
}

/** The result if the API server does not respond, or rejects the requests; any other error is rethrown. */
export function serverFailure({ options }: Cluster, cause: unknown): Result {
  const { server } = options.client;
  if (isCode(cause, 401)) {
    return error(
      `${server} does not accept the credentials of the kubeconfig.`,
      "Renew them, or use another kubeconfig: --kubeconfig",
    );
  }
  if (cause instanceof KubeApiError) {
    return error(
      `${server} rejected a request, and nothing more was checked: ${cause.message}.`,
      "Try again; if it continues, check the control plane of the cluster.",
    );
  }
  if (!(cause instanceof KubeUnreachableError)) throw cause;
  return error(
    `${server} cannot be reached: ${cause.message}.`,
    "Check that the cluster runs, that the kubeconfig names its server, and that this machine can connect to it.",
  );
}
