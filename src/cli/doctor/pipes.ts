import { SERVICE_LABEL } from "../../controller/names.ts";
import { keyOfPipe } from "../../controller/observe/workloads/kinds.ts";
import type { Cluster } from "./cluster.ts";
import { ok, type Result, warning } from "./result.ts";

/**
 * Checks that each pipe belongs to a service. The status of the PipeScaling shows all other reasons why a pipe is not
 * resized.
 */
export async function checkPipes(cluster: Cluster): Promise<Result[]> {
  const { services } = await cluster.records();
  const byId = new Map(services.map((each) => [each.id, each]));
  const pipes = await cluster.pipes();
  const results = pipes.flatMap(({ view }) => {
    const { kind, serviceId, metadata } = view;
    const { name, namespace } = metadata;
    const service = byId.get(serviceId);
    if (service?.namespace === namespace) return [];
    const why = service
      ? `the pipes of ${service.name} are in the namespace ${service.namespace}`
      : "this service has no valid record";
    const label = cluster.kubectl(
      `label ${kind.toLowerCase()} ${name} --namespace ${namespace} --overwrite ${SERVICE_LABEL}=<id>`,
    );
    return [
      warning(
        `The pipe ${keyOfPipe(view)} has the label ${SERVICE_LABEL}=${serviceId}, but ${why}, so it is not resized.`,
        `Correct the label (\`${label}\`), or the record of the service.`,
      ),
    ];
  });
  const isHealthy = pipes.length > 0 && results.length === 0;
  return isHealthy ? [ok(`Each pipe belongs to a service; pipes: ${pipes.length}.`)] : results;
}
