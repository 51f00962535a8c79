import type { ConfigMap, KubeObject, Secret } from "../../kube/objects.ts";
import { type ApiKey, parseApiKey } from "../../records/api-key.ts";
import { parseBackup } from "../../records/backup.ts";
import { parseKeyUsage } from "../../records/key-usage.ts";
import { RESOURCE_LABEL, type RecordKind } from "../../records/labels.ts";
import { parseMembers } from "../../records/members.ts";
import { type Organization, parseOrganization } from "../../records/organization.ts";
import type { Parsed } from "../../records/parse.ts";
import { parseService, type Service } from "../../records/service.ts";
import type { Finding } from "./finding.ts";

/** The records that can be read, and what is wrong with the others. */
export interface ReadRecords {
  readonly organizations: readonly Organization[];
  readonly services: readonly Service[];
  readonly findings: readonly Finding[];
}

/** @param objects all ConfigMaps of the namespace that say that they are records */
export function readRecords(objects: readonly ConfigMap[], namespace: string): ReadRecords {
  const organizations: Organization[] = [];
  const services: Service[] = [];
  const findings: Finding[] = [];
  const take = <T>(object: KubeObject, parsed: Parsed<T>, into: T[]) => {
    if (parsed.ok) into.push(parsed.value);
    else findings.push(malformed("configmap", object, namespace, parsed.problem));
  };
  for (const object of objects) {
    const { metadata, data } = object;
    const kind = metadata.labels?.[RESOURCE_LABEL];
    if (kind === "organization") take(object, parseOrganization(metadata.name, data), organizations);
    else if (kind === "service") take(object, parseService(metadata.name, metadata.labels, data), services);
    else {
      findings.push(
        ...problemsOf(kind ?? "", object).map((problem) =>
          malformed("configmap", object, namespace, problem),
        ),
      );
    }
  }
  return { organizations, services, findings };
}

const OTHER_KINDS: Readonly<
  Record<Exclude<RecordKind, "organization" | "service">, (object: ConfigMap) => string[]>
> = {
  members: ({ data }) => problemsIn([...parseMembers(data).values()]),
  backup: ({ metadata, data }) => problemsIn([parseBackup(metadata.name, data)]),
  "key-usage": ({ data }) => problemsIn([...parseKeyUsage(data).values()]),
};

function problemsOf(kind: string, object: ConfigMap): string[] {
  const find = new Map(Object.entries(OTHER_KINDS)).get(kind);
  return find ? find(object) : [`the label ${RESOURCE_LABEL} is "${kind}", which is no kind of record`];
}

function problemsIn(parsed: readonly Parsed<unknown>[]): string[] {
  return parsed.flatMap((each) => (each.ok ? [] : [each.problem]));
}

/** The keys that can be read, and what is wrong with the others. */
export function readKeys(objects: readonly Secret[], namespace: string) {
  const keys: ApiKey[] = [];
  const findings: Finding[] = [];
  for (const object of objects) {
    const parsed = parseApiKey(object.metadata.labels, object.data);
    if (parsed.ok) keys.push(parsed.value);
    else findings.push(malformed("secret", object, namespace, parsed.problem));
  }
  return { keys, findings };
}

function malformed(kind: string, { metadata }: KubeObject, namespace: string, problem: string): Finding {
  return {
    severity: "error",
    check: "records",
    message: `The ${kind} ${metadata.name} is malformed: ${problem}.`,
    remedy: `kubectl edit ${kind} ${metadata.name} --namespace ${namespace}`,
  };
}
