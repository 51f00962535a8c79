import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { parseService, type Service, serviceConfigMapName } from "../../../records/service.ts";
import { argument } from "../../argument.ts";
import { CliError } from "../../failure.ts";
import { uuid } from "../../values.ts";
import type { Records } from "../records.ts";

export const serviceArgument = {
  service: argument(uuid, { description: "id of the service" }),
};

/** @throws CliError when there is none of that id */
export async function findService(records: Records, id: string): Promise<ConfigMap> {
  const object = await records.get<ConfigMap>(CONFIG_MAPS, serviceConfigMapName(id));
  if (object) return object;
  await records.requireNamespace();
  throw new CliError(
    `There is no service with the id ${id} in the namespace ${records.namespace}: see admin service list.`,
  );
}

/** A service with the object that it was read from. */
export interface FoundService {
  readonly service: Service;
  readonly object: ConfigMap;
}

/** @throws CliError if there is no service of that id, or its record is malformed */
export async function findWellFormedService(records: Records, id: string): Promise<FoundService> {
  const object = await findService(records, id);
  const { metadata, data } = object;
  const parsed = parseService(metadata.name, metadata.labels, data);
  if (parsed.ok) return { service: parsed.value, object };
  throw new CliError(
    `The record of service ${id} is malformed, put it right first (kubectl edit configmap ${metadata.name} --namespace ${records.namespace}): ${parsed.problem}.`,
  );
}
