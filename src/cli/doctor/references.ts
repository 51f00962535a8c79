import { serviceConfigMapName } from "../../records/service.ts";
import { recordsFlag } from "../options.ts";
import type { Cluster } from "./cluster.ts";
import { error, note, ok, type Result, warning } from "./result.ts";

/** Checks that all records except those of keys are well-formed. */
export async function checkRecords(cluster: Cluster): Promise<Result[]> {
  const { organizations, services, malformed } = await cluster.records();
  if (malformed.length > 0) return malformed;
  if (organizations.length === 0) {
    const { records, program } = cluster.options;
    return [
      note(
        `The namespace ${records} has no organization yet.`,
        `${program} admin organization create --create-namespace --name <name> --tier <tier>${recordsFlag(records)}`,
      ),
    ];
  }
  const counts = `organizations ${organizations.length}, services ${services.length}`;
  return [ok(`The records are well-formed: ${counts}.`)];
}

/** Checks that the records of keys are well-formed, and that their organizations exist. */
export async function checkKeys(cluster: Cluster): Promise<Result[]> {
  const { keys, malformed } = await cluster.keys();
  const { organizations } = await cluster.records();
  const { records, program } = cluster.options;
  const flag = recordsFlag(records);
  const known = new Set(organizations.map(({ id }) => id));
  const orphans = keys.filter(({ organizationId }) => !known.has(organizationId));
  return [
    ...malformed,
    ...orphans.map(({ id, name, organizationId }) =>
      warning(
        `The API key ${name} (${id}) belongs to the organization ${organizationId}, which has no valid record, so it cannot be used.`,
        `${program} admin key delete ${id}${flag}, or create the organization: ${program} admin organization create --id ${organizationId} --name <name> --tier <tier>${flag}`,
      ),
    ),
  ];
}

/** Checks that the organizations of services exist. */
export async function checkServices(cluster: Cluster): Promise<Result[]> {
  const { organizations, services } = await cluster.records();
  const { records, program } = cluster.options;
  const flag = recordsFlag(records);
  const known = new Set(organizations.map(({ id }) => id));
  return services
    .filter(({ organizationId }) => !known.has(organizationId))
    .map(({ id, name, organizationId }) =>
      error(
        `The service ${name} (${id}) belongs to the organization ${organizationId}, which has no valid record, so its pipes are not resized.`,
        `Create the organization: ${program} admin organization create --id ${organizationId} --name <name> --tier <tier>${flag}; or delete the service: ${program} admin service delete ${id}${flag}`,
      ),
    );
}

/** Checks that the namespaces of the records and of pipes exist, and that the controller watches those of pipes. */
export async function checkNamespaces(cluster: Cluster): Promise<Result[]> {
  const { records, program } = cluster.options;
  const namespaces = await cluster.list({ resource: { apiVersion: "v1", plural: "namespaces" } });
  const existing = new Set(namespaces.map(({ metadata }) => metadata.name));
  const { pipeNamespaces = [] } = (await cluster.controller()) ?? {};
  const { services } = await cluster.records();
  const results = services.flatMap(({ id, name, namespace }) => {
    const service = `The service ${name} (${id}) names the namespace ${namespace} for its pipes, which`;
    if (!existing.has(namespace)) {
      const edit = `kubectl edit configmap ${serviceConfigMapName(id)} --namespace ${records}`;
      const remedy = `kubectl create namespace ${namespace}, or name another one: ${edit}`;
      return [error(`${service} does not exist.`, remedy)];
    }
    if (pipeNamespaces.length === 0 || pipeNamespaces.includes(namespace)) return [];
    const remedy = "Add it to pipes.namespaces in the values of the chart: helm upgrade.";
    return [error(`${service} the controller does not watch.`, remedy)];
  });
  if (existing.has(records)) return results;
  return [
    error(
      `The namespace ${records} of the records does not exist.`,
      `Specify another one with --namespace, or create it with the first organization: ${program} admin organization create --create-namespace`,
    ),
    ...results,
  ];
}
