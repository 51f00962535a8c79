import { canonicalUuid } from "../../domain/identifiers.ts";
import type { ConfigMap } from "../../kube/objects.ts";
import { parseService, type Service, serviceConfigMapName } from "../../records/service.ts";
import { recordsFlag } from "../common-options.ts";
import { CliError } from "../failure.ts";

/**
 * The service that somebody named, by its id or its name.
 *
 * @param objects the records of all services
 * @throws CliError when there is none, when its record is malformed, or when several have that name
 */
export function serviceNamed(objects: readonly ConfigMap[], named: string, namespace: string): Service {
  const id = canonicalUuid(named);
  const record = objects.find(({ metadata }) => metadata.name === serviceConfigMapName(id ?? ""));
  if (record) return wellFormed(record, namespace);
  const sameName = objects.filter(({ data }) => data?.["name"] === named);
  const [only, ...others] = sameName;
  if (!only) {
    throw new CliError(
      `There is no service ${JSON.stringify(named)} in the namespace ${namespace}: pipe-scaling admin service list${recordsFlag(namespace)} names them all.`,
    );
  }
  if (others.length === 0) return wellFormed(only, namespace);
  const known = sameName.map((each) => wellFormed(each, namespace));
  const ids = known.map((each) => `  ${each.id}  (organization ${each.organizationId})`).join("\n");
  throw new CliError(
    `${known.length} services are named ${JSON.stringify(named)}, name one by its id:\n${ids}`,
  );
}

function wellFormed({ metadata, data }: ConfigMap, namespace: string): Service {
  const parsed = parseService(metadata.name, metadata.labels, data);
  if (parsed.ok) return parsed.value;
  throw new CliError(
    `The record of that service is malformed, put it right first (kubectl edit configmap ${metadata.name} --namespace ${namespace}): ${parsed.problem}.`,
  );
}
