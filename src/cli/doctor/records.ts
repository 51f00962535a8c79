import type { ConfigMap, KubeObject, Secret } from "../../kube/objects.ts";
import { type ApiKey, parseApiKey } from "../../records/api-key.ts";
import { parseBackup } from "../../records/backup.ts";
import { parseKeyUsage } from "../../records/key-usage.ts";
import { RESOURCE_LABEL } from "../../records/labels.ts";
import { parseMembers } from "../../records/members.ts";
import {
  type Organization,
  organizationConfigMapName,
  parseOrganization,
} from "../../records/organization.ts";
import type { Parsed } from "../../records/parse.ts";
import { parseService, type Service, serviceConfigMapName } from "../../records/service.ts";
import { recordsFlag } from "../options.ts";
import { error, type Result, warning } from "./result.ts";

/** The well-formed records, and results for the malformed ones. */
export interface ReadRecords {
  readonly organizations: readonly Organization[];
  readonly services: readonly Service[];
  readonly keys: readonly ApiKey[];
  readonly malformed: readonly Result[];
}

/** @param configMaps all ConfigMaps of the namespace with the label of records; `secrets` likewise */
export function readRecords(
  configMaps: readonly ConfigMap[],
  secrets: readonly Secret[],
  namespace: string,
): ReadRecords {
  const malformed: Result[] = [];
  const wellFormed = <T>(
    kind: string,
    { metadata: { name } }: KubeObject,
    parsed: Iterable<Parsed<T>>,
  ): T[] =>
    [...parsed].flatMap((each) => {
      if (each.ok) return [each.value];
      const remedy = `kubectl edit ${kind} ${name} --namespace ${namespace}`;
      malformed.push(error(`The ${kind} ${name} is malformed: ${each.problem}.`, remedy));
      return [];
    });
  const organizations: Organization[] = [];
  const services: Service[] = [];
  for (const object of configMaps) {
    const { metadata, data } = object;
    switch (metadata.labels?.[RESOURCE_LABEL]) {
      case "organization":
        organizations.push(...wellFormed("configmap", object, [parseOrganization(metadata.name, data)]));
        break;
      case "service":
        services.push(
          ...wellFormed("configmap", object, [parseService(metadata.name, metadata.labels, data)]),
        );
        break;
      default:
        wellFormed("configmap", object, parseOther(object));
    }
  }
  const keys = secrets.flatMap((object) =>
    wellFormed("secret", object, [parseApiKey(object.metadata.labels, object.data)]),
  );
  return { organizations, services, keys, malformed };
}

/** Records that no other record refers to. */
function parseOther({ metadata, data }: ConfigMap): Iterable<Parsed<unknown>> {
  const kind = metadata.labels?.[RESOURCE_LABEL];
  switch (kind) {
    case "members":
      return parseMembers(data).values();
    case "backup":
      return [parseBackup(metadata.name, data)];
    case "key-usage":
      return parseKeyUsage(data).values();
    default:
      return [{ ok: false, problem: `the label ${RESOURCE_LABEL} is "${kind}", which is no kind of record` }];
  }
}

export type NamespaceState = "active" | "terminating" | "missing";

export interface References extends Pick<ReadRecords, "organizations" | "services" | "keys"> {
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
