import { isBeingDeleted, type ObjectMeta } from "../../kube/objects.ts";
import { serviceConfigMapName } from "../../records/service.ts";
import type { Cluster } from "./cluster.ts";
import { error, note, ok, type Result, warning } from "./result.ts";

/** Checks that all records in ConfigMaps are well-formed. */
export async function checkRecords(cluster: Cluster): Promise<Result[]> {
  const { organizations, services, malformed } = await cluster.records();
  if (malformed.length > 0) return malformed;
  if (organizations.length === 0) {
    return [
      note(
        `The namespace ${cluster.namespace} has no organization yet.`,
        creationOf(cluster, "--create-namespace"),
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
  const known = new Set(organizations.map(({ id }) => id));
  const orphans = keys.filter(({ organizationId }) => !known.has(organizationId));
  return [
    ...malformed,
    ...orphans.map(({ id, name, organizationId }) =>
      warning(
        `The API key ${name} (${id}) belongs to the organization ${organizationId}, which has no valid record, so it cannot be used.`,
        `\`${cluster.command(`admin key delete ${id}`)}\`, or create the organization: ${creationOf(cluster, `--id ${organizationId}`)}`,
      ),
    ),
  ];
}

/** Checks that the organizations of services exist. */
export async function checkServices(cluster: Cluster): Promise<Result[]> {
  const { organizations, services } = await cluster.records();
  const known = new Set(organizations.map(({ id }) => id));
  return services
    .filter(({ organizationId }) => !known.has(organizationId))
    .map(({ id, name, organizationId }) =>
      error(
        `The service ${name} (${id}) belongs to the organization ${organizationId}, which has no valid record, so its pipes are not resized.`,
        `Create the organization: \`${creationOf(cluster, `--id ${organizationId}`)}\`; or delete the service: ${cluster.command(`admin service delete ${id}`)}`,
      ),
    );
}

function creationOf(cluster: Cluster, flag: string): string {
  return cluster.command(`admin organization create ${flag} --name <name> --tier <tier>`);
}

/** Checks that the namespaces of the records and of pipes exist, and that the controller watches those of pipes. */
export async function checkNamespaces(cluster: Cluster): Promise<Result[]> {
  const records = cluster.namespace;
  const namespaces = await cluster.list({ resource: { apiVersion: "v1", plural: "namespaces" } });
  const found = new Map(namespaces.map(({ metadata }) => [metadata.name, metadata]));
  const { pipeNamespaces = [] } = (await cluster.controller()) ?? {};
  const { services } = await cluster.records();
  const results = services.flatMap(({ id, name, namespace }) => {
    const service = `The pipes of the service ${name} (${id}) belong in the namespace ${namespace}, which`;
    const edit = cluster.kubectl(`edit configmap ${serviceConfigMapName(id)} --namespace ${records}`);
    const creation = `\`${cluster.kubectl(`create namespace ${namespace}`)}\`, or name another one: ${edit}`;
    const absence = absenceOf(cluster, namespace, found.get(namespace));
    if (absence) return [error(`${service} ${absence.state}.`, absence.before + creation)];
    if (pipeNamespaces.length === 0 || pipeNamespaces.includes(namespace)) return [];
    const remedy = "Add it to pipes.namespaces in the values of the chart: helm upgrade.";
    return [error(`${service} the controller does not watch.`, remedy)];
  });
  const absence = absenceOf(cluster, records, found.get(records));
  if (!absence) return results;
  return [
    error(
      `The namespace ${records} of the records ${absence.state}.`,
      `${absence.before}Specify another one with --namespace, or create it with the first organization: ${creationOf(cluster, "--create-namespace")}`,
    ),
    ...results,
  ];
}

/**
 * Returns the state of a namespace that cannot be used, and the beginning of the remedy. Nothing can be created in a
 * namespace that is being deleted, and Kubernetes deletes what is in it.
 */
function absenceOf(cluster: Cluster, name: string, metadata: ObjectMeta | undefined) {
  if (!metadata) return { state: "does not exist", before: "" };
  if (!isBeingDeleted(metadata)) return undefined;
  const description = cluster.kubectl(`describe namespace ${name}`);
  return {
    state: "is being deleted with everything in it",
    before: `\`${description}\` shows what keeps it; wait until it is gone. `,
  };
}
