import { accessListOf } from "../../domain/access-list.ts";
import type { ConfigMap, KubeObject, Secret } from "../../kube/objects.ts";
import type { ApiKey } from "../../records/api-key.ts";
import { RECORD_KINDS, recordKindOf } from "../../records/kinds.ts";
import { RESOURCE_LABEL } from "../../records/labels.ts";
import type { Parsed } from "../../records/parse.ts";
import { createAgain, IN_SECRET, KEYS, ORGANIZATIONS, SERVICES } from "../admin/kinds.ts";
import { kubectlCommand, type Place } from "../options.ts";
import { error, type Result } from "./result.ts";

/**
 * Returns the well-formed organizations and services, and a result for each problem of a malformed record.
 *
 * @param configMaps all ConfigMaps of the namespace with the label of records
 */
export function parseRecords(configMaps: readonly ConfigMap[], place: Place) {
  const malformed: Result[] = [];
  const {
    organization = [],
    service = [],
    ...others
  } = Object.groupBy(configMaps, (each) => recordKindOf(each.metadata.labels) ?? "unknown");
  const parse = <T>(objects: readonly ConfigMap[], read: (object: ConfigMap) => Iterable<Parsed<T>>) =>
    objects.flatMap((object) => wellFormed("configmap", place, object, read(object), malformed));
  const organizations = parse(organization, (each) => [ORGANIZATIONS.parse(each)]);
  const services = parse(service, (each) => [SERVICES.parse(each)]);
  for (const objects of Object.values(others)) parse(objects ?? [], parseOther);
  return { organizations, services, malformed };
}

/** @param secrets all Secrets of the namespace with the label of records */
export function parseKeys(secrets: readonly Secret[], place: Place) {
  const malformed: Result[] = [];
  const keys = secrets.flatMap((secret) => {
    const parsed = wellFormed("secret", place, secret, [KEYS.parse(secret)], malformed);
    // A key with a malformed access list still belongs to its organization, so it is returned.
    const lists = parsed.map(({ ipAccessList }) => accessProblem(ipAccessList));
    wellFormed("secret", place, secret, lists, malformed);
    return parsed;
  });
  return { keys, malformed };
}

function accessProblem(ipAccessList: ApiKey["ipAccessList"]): Parsed<undefined> {
  const { problem } = accessListOf(ipAccessList);
  return problem === undefined ? { ok: true, value: undefined } : { ok: false, problem };
}

/** Adds a result to `malformed` for each problem, and returns the well-formed records. */
function wellFormed<T>(
  resource: string,
  place: Place,
  object: KubeObject,
  records: Iterable<Parsed<T>>,
  malformed: Result[],
): T[] {
  const all = [...records];
  const { name } = object.metadata;
  const edit = kubectlCommand(place, `edit ${resource} ${name} --namespace ${place.namespace}`);
  const remedy = resource === "secret" ? `\`${edit}\`${IN_SECRET}.` : edit;
  // All entries that were not read have the same problem, so it is reported once.
  const problems = all.flatMap((parsed) => (parsed.ok ? [] : [[parsed.problem, parsed] as const]));
  for (const [problem, { isImmutable }] of new Map(problems)) {
    const how = isImmutable ? `${createAgain(place, resource, object)}.` : remedy;
    malformed.push(error(`The ${resource} ${name} is malformed: ${problem}.`, how));
  }
  return all.flatMap((parsed) => (parsed.ok ? [parsed.value] : []));
}

/** Parses a record that no other record refers to, only to find problems. */
function parseOther(object: ConfigMap): Iterable<Parsed<unknown>> {
  const kind = recordKindOf(object.metadata.labels);
  if (kind !== undefined) return RECORD_KINDS[kind].parse(object);
  const label = object.metadata.labels?.[RESOURCE_LABEL] ?? "";
  return [{ ok: false, problem: `the label ${RESOURCE_LABEL} is "${label}", which is not a kind of record` }];
}
