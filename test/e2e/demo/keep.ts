import type { Cluster } from "@pipe-scaling/local-cluster";
import { RECORDS_NAMESPACE } from "../../../deploy/chart/install.ts";
import type { Credentials } from "./http.ts";
import type { Narration } from "./narration.ts";

/** What `--keep` leaves running: the cluster and the processes. */
export interface Kept {
  readonly cluster: Cluster;
  readonly baseUrl: string;
  readonly organizationId: string;
  readonly serviceId: string;
  readonly key: Credentials;
}

export function tellWhatToTry(narration: Narration, kept: Kept): void {
  const { cluster, baseUrl, organizationId, serviceId, key } = kept;
  narration.plain(`
The cluster and both processes are still running. To try it yourself:

  export KUBECONFIG='${cluster.kubeconfig}'
  export PATH='${cluster.binaries.dir}':"$PATH"
  kubectl get psc -A --watch

  export API=${baseUrl}/v1/organizations KEY=${key.keyId}:${key.keySecret}
  curl -u "$KEY" $API
  curl -u "$KEY" $API/${organizationId}/services/${serviceId}/pipesCdcScaling
  curl -u "$KEY" $API/${organizationId}/services/${serviceId}/pipesCdcScaling \\
    -X PATCH -H 'content-type: application/json' -d '{"replicaCpuMillicores": 2000}'

  kubectl patch configmap organization-${organizationId} -n ${RECORDS_NAMESPACE} \\
    --type merge -p '{"data": {"tier": "basic"}}'

Logs: ${cluster.dir}/logs/api.log and controller.log. To remove everything:

  npm run cluster -- down --name ${cluster.name}`);
}
