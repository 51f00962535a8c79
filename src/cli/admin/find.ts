import type { ConfigMap } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import { type Member, parseMembers } from "../../records/members.ts";
import {
  type Organization,
  organizationConfigMapName,
  parseOrganization,
} from "../../records/organization.ts";
import { parseService, type Service, serviceConfigMapName } from "../../records/service.ts";
import { argument } from "../argument.ts";
import { CliError } from "../failure.ts";
import type { Io } from "../io.ts";
import { uuid } from "../values.ts";
import { wellFormed } from "./options.ts";
import type { Records } from "./records.ts";

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
      `There is no organization with the id ${id} in the namespace ${records.namespace}: see admin organization list, or create it with admin organization create --id ${id}.`,
    );
  }
  const parsed = parseOrganization(object.metadata.name, object.data);
  if (parsed.ok) return { organization: parsed.value, object };
  throw new CliError(
    `The record of organization ${id} is malformed, correct it first (kubectl edit configmap ${object.metadata.name} --namespace ${records.namespace}): ${parsed.problem}.`,
  );
}

/** The organization of a service, if its record can be read. */
export async function findOrganizationOf(
  records: Records,
  organizationId: string,
  io: Io,
): Promise<Organization | undefined> {
  const object = await records.get<ConfigMap>(CONFIG_MAPS, organizationConfigMapName(organizationId));
  const [organization] = wellFormed(io, object ? [object] : [], ({ metadata, data }) =>
    parseOrganization(metadata.name, data),
  );
  return organization;
}

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
    `The record of service ${id} is malformed, correct it first (kubectl edit configmap ${metadata.name} --namespace ${records.namespace}): ${parsed.problem}.`,
  );
}

/** The services of records that can be read. */
export function servicesOf(io: Io, objects: readonly ConfigMap[]): Service[] {
  return wellFormed(io, objects, ({ metadata, data }) => parseService(metadata.name, metadata.labels, data));
}

/** The members that can be read; of each other entry a line on standard error says what is wrong. */
export function membersOf(io: Io, object: ConfigMap | undefined): Member[] {
  return [...parseMembers(object?.data).values()].flatMap((parsed) => {
    if (parsed.ok) return [parsed.value];
    io.err(`An entry of ${object?.metadata.name} is malformed and was skipped: ${parsed.problem}.\n`);
    return [];
  });
}
