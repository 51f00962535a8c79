import type { ConfigMap, KubeObject, Secret } from "../../kube/objects.ts";
import type { ApiKey } from "../../records/api-key.ts";
import { parseBackup } from "../../records/backup.ts";
import { parseKeyUsage } from "../../records/key-usage.ts";
import { RESOURCE_LABEL } from "../../records/labels.ts";
import { parseMembers } from "../../records/members.ts";
import { type Organization, organizationConfigMapName } from "../../records/organization.ts";
import type { Parsed } from "../../records/parse.ts";
import { type Service, serviceConfigMapName } from "../../records/service.ts";
import { KEYS, ORGANIZATIONS, SERVICES } from "../admin/kinds.ts";
import { recordsFlag } from "../options.ts";
import { error, type Result, warning } from "./result.ts";

/**
 * The well-formed records, and results for the malformed ones.
 *
 * @param configMaps all ConfigMaps of the namespace with the label of records; `secrets` likewise
 */
export function readRecords(configMaps: readonly ConfigMap[], secrets: readonly Secret[], namespace: string) {
  const malformed: Result[] = [];
  const wellFormed = <O extends KubeObject, T>(
    resource: string,
    objects: readonly O[] = [],
    parse: (object: O) => Iterable<Parsed<T>>,
  ): T[] =>
    objects.flatMap((object) =>
      [...parse(object)].flatMap((parsed) => {
        if (parsed.ok) return [parsed.value];
        const { name } = object.metadata;
        const remedy = `kubectl edit ${resource} ${name} --namespace ${namespace}`;
        malformed.push(error(`The ${resource} ${name} is malformed: ${parsed.problem}.`, remedy));
        return [];
      }),
    );
  const { organization, service, ...others } = Object.groupBy(configMaps, kindOf);
  const organizations = wellFormed("configmap", organization, (each) => [ORGANIZATIONS.parse(each)]);
  const services = wellFormed("configmap", service, (each) => [SERVICES.parse(each)]);
  for (const objects of Object.values(others)) wellFormed("configmap", objects, parseOther);
  const keys = wellFormed("secret", secrets, (each) => [KEYS.parse(each)]);
  return { organizations, services, keys, malformed };
}

function kindOf({ metadata }: KubeObject): string {
  return metadata.labels?.[RESOURCE_LABEL] ?? "";
}

/** Records that no other record refers to. */
function parseOther(object: ConfigMap): Iterable<Parsed<unknown>> {
  const { metadata, data } = object;
  switch (kindOf(object)) {
    case "members":
      return parseMembers(data).values();
    case "backup":
      return [parseBackup(metadata.name, data)];
    case "key-usage":
      return parseKeyUsage(data).values();
    default: {
      const problem = `the label ${RESOURCE_LABEL} is "${kindOf(object)}", which is no kind of record`;
      return [{ ok: false, problem }];
    }
  }
}

export type NamespaceState = "active" | "terminating" | "missing";

export interface References {
  readonly organizations: readonly Organization[];
  readonly services: readonly Service[];
  readonly keys: readonly ApiKey[];
  /** Names of the tiers; `undefined` if they could not be read. */
  readonly tiers: ReadonlySet<string> | undefined;
  /** Namespaces of services, as far as they could be read. */
  readonly namespaces: ReadonlyMap<string, NamespaceState>;
  /** Namespaces in which the controller looks for pipes; empty for all. */
  readonly pipeNamespaces: readonly string[];
}

/** Checks that the tiers, organizations and namespaces that records name exist. */
export function checkReferences(references: References, records: string): Result[] {
  const { organizations, services, keys, tiers } = references;
  const flag = recordsFlag(records);
  const known = new Set(organizations.map(({ id }) => id));
  const create = (id: string) =>
    `pipe-scaling admin organization create --id ${id} --name <name> --tier <tier>${flag}`;
  return [
    ...organizations
      .filter(({ tier }) => tiers && !tiers.has(tier))
      .map(({ id, name, tier }) =>
        error(
          `The organization ${name} has the unknown tier "${tier}", so its pipes are not resized; the tiers are ${[...(tiers ?? [])].join(", ")}.`,
          `pipe-scaling admin organization update ${id} --tier <tier>${flag}, or add the tier to the values of the chart.`,
        ),
      ),
    ...services.flatMap((service) => {
      const { id, name, organizationId } = service;
      const edit = `kubectl edit configmap ${serviceConfigMapName(id)} --namespace ${records}`;
      const inNamespace = checkNamespace(service, references, edit) ?? [];
      if (known.has(organizationId)) return inNamespace;
      const message = `The service ${name} (${id}) belongs to the organization ${organizationId}, which has no well-formed record, so its pipes are not resized.`;
      const configMap = organizationConfigMapName(organizationId);
      const remedy = `Create the ConfigMap ${configMap} (${create(organizationId)}), or correct the label: ${edit}`;
      return [error(message, remedy)].concat(inNamespace);
    }),
    ...keys
      .filter(({ organizationId }) => !known.has(organizationId))
      .map(({ id, name, organizationId }) =>
        warning(
          `The API key ${name} (${id}) belongs to the organization ${organizationId}, which has no well-formed record, so it cannot be used.`,
          `pipe-scaling admin key delete ${id}${flag}, or create the organization: ${create(organizationId)}`,
        ),
      ),
  ];
}

/** Checks the namespace of a service's pipes; `undefined` if it is fine, or cannot be read. */
function checkNamespace(
  { id, name, namespace }: Service,
  { namespaces, pipeNamespaces }: References,
  edit: string,
): Result | undefined {
  const service = `The service ${name} (${id})`;
  const state = namespaces.get(namespace);
  if (state === "missing") {
    return error(
      `${service} names the namespace ${namespace} for its pipes, which does not exist.`,
      `kubectl create namespace ${namespace}, or name another one: ${edit}`,
    );
  }
  if (state === "terminating") {
    return warning(
      `${service} has its pipes in the namespace ${namespace}, which is being deleted: they are not resized.`,
      `When its pipes run in another namespace: ${edit}`,
    );
  }
  if (pipeNamespaces.length === 0 || pipeNamespaces.includes(namespace)) return undefined;
  return error(
    `${service} has its pipes in the namespace ${namespace}, which the controller does not watch.`,
    "Add it to pipes.namespaces in the values of the chart: helm upgrade.",
  );
}
