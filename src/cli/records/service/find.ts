import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { serviceConfigMapName } from "../../../records/service.ts";
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
    `There is no service with the id ${id} in the namespace ${records.namespace}: see service list.`,
  );
}
