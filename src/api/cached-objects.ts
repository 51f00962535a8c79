import type { PipeScaling } from "../crd/pipe-scaling.ts";
import type { BackupPolicy } from "../domain/backup-policy.ts";
import type { Size } from "../domain/size.ts";
import { type ConfigMap, identityOf, type KubeObject, type Secret } from "../kube/objects.ts";
import { type ApiKey, parseApiKey } from "../records/api-key.ts";
import { parseBackup } from "../records/backup.ts";
import { type KeyUsage, parseKeyUsage } from "../records/key-usage.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL } from "../records/labels.ts";
import { type Members, parseMembers } from "../records/members.ts";
import { type Organization, parseOrganization } from "../records/organization.ts";
import type { Parsed } from "../records/parse.ts";
import { parseService, type Service } from "../records/service.ts";
import { type AccessList, accessListOf } from "./access-list.ts";
import { type Progress, progressOf } from "./progress.ts";
import { sizeOf } from "./resource-size.ts";

/**
 * What the API keeps in memory of the cluster's objects. Each is read once, when it enters the cache; one
 * that cannot be read stays there as its problem, so that it can fail what it is about and nothing else.
 */

export interface CachedKey extends KubeObject {
  readonly parsed: Parsed<ApiKey>;
  readonly access: AccessList;
}

export interface CachedOrganization extends KubeObject {
  readonly kind: "organization";
  readonly parsed: Parsed<Organization>;
}

export interface CachedService extends KubeObject {
  readonly kind: "service";
  /** By its label, so that a service that cannot be read still answers only its own organization. */
  readonly organizationId: string | undefined;
  readonly parsed: Parsed<Service>;
}

export interface CachedMembers extends KubeObject {
  readonly kind: "members";
  readonly members: Members;
}

export interface CachedBackup extends KubeObject {
  readonly kind: "backup";
  readonly parsed: Parsed<BackupPolicy>;
}

export interface CachedKeyUsage extends KubeObject {
  readonly kind: "key-usage";
  readonly usage: KeyUsage;
}

export type CachedRecord = CachedOrganization | CachedService | CachedMembers | CachedBackup | CachedKeyUsage;

export interface CachedScaling extends KubeObject {
  readonly suspended: boolean;
  /** What the spec asks for, if anything. */
  readonly requested: Size | undefined;
  /** The last size that every pipe had at once. */
  readonly effective: Size | undefined;
  readonly progress: Progress;
}

export function toCachedKey(raw: Secret): CachedKey {
  const parsed = parseApiKey(raw.metadata.labels, raw.data);
  return {
    metadata: identityOf(raw.metadata),
    parsed,
    access: accessListOf(parsed.ok ? parsed.value.ipAccessList : []),
  };
}

/** @param servesNamespace whether we watch the PipeScalings of a namespace */
export function toCachedRecord(
  raw: ConfigMap,
  servesNamespace: (namespace: string) => boolean,
): CachedRecord {
  switch (raw.metadata.labels?.[RESOURCE_LABEL]) {
    case "organization":
      return toCachedOrganization(raw);
    case "members":
      return toCachedMembers(raw);
    case "backup":
      return toCachedBackup(raw);
    case "key-usage":
      return toCachedKeyUsage(raw);
    default:
      return toCachedService(raw, servesNamespace);
  }
}

function toCachedOrganization({ metadata, data }: ConfigMap): CachedOrganization {
  return {
    kind: "organization",
    metadata: identityOf(metadata),
    parsed: parseOrganization(metadata.name, data),
  };
}

export function toCachedMembers({ metadata, data }: ConfigMap): CachedMembers {
  return { kind: "members", metadata: identityOf(metadata), members: parseMembers(data) };
}

export function toCachedBackup({ metadata, data }: ConfigMap): CachedBackup {
  return { kind: "backup", metadata: identityOf(metadata), parsed: parseBackup(metadata.name, data) };
}

export function toCachedKeyUsage({ metadata, data }: ConfigMap): CachedKeyUsage {
  return { kind: "key-usage", metadata: identityOf(metadata), usage: parseKeyUsage(data) };
}

function toCachedService(
  { metadata, data }: ConfigMap,
  servesNamespace: (namespace: string) => boolean,
): CachedService {
  const { name, labels } = metadata;
  const parsed = parseService(name, labels, data);
  return {
    kind: "service",
    metadata: identityOf(metadata),
    organizationId: labels?.[ORGANIZATION_LABEL],
    parsed:
      parsed.ok && !servesNamespace(parsed.value.namespace)
        ? {
            ok: false,
            problem: `namespace: ${parsed.value.namespace} is not one that this API was told to watch`,
          }
        : parsed,
  };
}

export type PipeScalingResource = PipeScaling & KubeObject;

export function toCachedScaling(raw: PipeScalingResource): CachedScaling {
  const { metadata, spec, status } = raw;
  const { deletionTimestamp } = metadata;
  return {
    metadata: { ...identityOf(metadata), ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
    suspended: spec?.suspend === true,
    requested: spec && sizeOf(spec),
    effective: status?.effective && sizeOf(status.effective),
    progress: progressOf(raw),
  };
}

/** What is wrong with a cached record, in words for who edits it. */
export function problemOf(object: CachedKey | CachedRecord): string | undefined {
  if ("members" in object) return problemsIn(object.members);
  if ("usage" in object) return problemsIn(object.usage);
  if (!object.parsed.ok) return object.parsed.problem;
  return "access" in object ? object.access.problem : undefined;
}

function problemsIn(entries: ReadonlyMap<string, Parsed<unknown>>): string | undefined {
  const problems = [...entries.values()].flatMap((entry) => (entry.ok ? [] : [entry.problem]));
  return problems.length === 0 ? undefined : problems.join("; ");
}
