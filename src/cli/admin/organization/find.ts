import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import {
  type Organization,
  organizationConfigMapName,
  parseOrganization,
} from "../../../records/organization.ts";
import { argument } from "../../argument.ts";
import { CliError } from "../../failure.ts";
import { uuid } from "../../values.ts";
import type { Records } from "../records.ts";

export const organizationArgument = {
  organization: argument(uuid, { description: "id of the organization" }),
};

/** An organization with the object that it was read from. */
export interface FoundOrganization {
  readonly organization: Organization;
  readonly object: ConfigMap;
}

/** @throws CliError when there is none of that id, or its record is malformed */
export async function findOrganization(records: Records, id: string): Promise<FoundOrganization> {
  const object = await records.get<ConfigMap>(CONFIG_MAPS, organizationConfigMapName(id));
  if (!object) {
    await records.requireNamespace();
    throw new CliError(
      `There is no organization with the id ${id} in the namespace ${records.namespace}: see admin organization list, or make it with admin organization create --id ${id}.`,
    );
  }
  const parsed = parseOrganization(object.metadata.name, object.data);
  if (parsed.ok) return { organization: parsed.value, object };
  throw new CliError(
    `The record of organization ${id} is malformed, put it right first (kubectl edit configmap ${object.metadata.name} --namespace ${records.namespace}): ${parsed.problem}.`,
  );
}
