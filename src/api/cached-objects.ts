import type { PipeScaling, PipeScalingSpec } from "../crd/pipe-scaling.ts";
import type { Size } from "../domain/size.ts";
import type { ConfigMap, KubeObject, ObjectMeta, Secret } from "../kube/objects.ts";
import { type ApiKey, parseApiKey } from "../records/api-key.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL } from "../records/labels.ts";
import { type Organization, parseOrganization } from "../records/organization.ts";
import type { Parsed } from "../records/parse.ts";
import { parseService, type Service } from "../records/service.ts";
import { type AccessList, accessListOf } from "./access-list.ts";

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

export type CachedRecord = CachedOrganization | CachedService;

export interface CachedScaling extends KubeObject {
  readonly suspended: boolean;
  /** What the spec asks for, if anything. */
  readonly requested: Size | undefined;
  /** The last size that every pipe had at once. */
  readonly effective: Size | undefined;
}

export function toCachedKey(raw: Secret): CachedKey {
  const parsed = parseApiKey(raw.metadata.labels, raw.data);
  return {
    metadata: identity(raw.metadata),
    parsed,
    access: accessListOf(parsed.ok ? parsed.value.ipAccessList : []),
  };
}

/** @param servesNamespace whether we watch the PipeScalings of a namespace */
export function toCachedRecord(
  raw: ConfigMap,
  servesNamespace: (namespace: string) => boolean,
): CachedRecord {
  const { name, labels } = raw.metadata;
  const { data } = raw;
  const metadata = identity(raw.metadata);
  if (labels?.[RESOURCE_LABEL] === "organization") {
    return { kind: "organization", metadata, parsed: parseOrganization(name, data) };
  }
  const parsed = parseService(name, labels, data);
  return {
    kind: "service",
    metadata,
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

export function toCachedScaling({ metadata, spec, status }: PipeScalingResource): CachedScaling {
  const { deletionTimestamp } = metadata;
  return {
    metadata: { ...identity(metadata), ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
    suspended: spec?.suspend === true,
    requested: spec && sizeOf(spec),
    effective: status?.effective && sizeOf(status.effective),
  };
}

function sizeOf({ replicaCpuMillicores, replicaMemoryGb }: PipeScalingSpec): Size | undefined {
  if (replicaCpuMillicores === undefined || replicaMemoryGb === undefined) return undefined;
  return { cpuMillicores: replicaCpuMillicores, memoryGib: replicaMemoryGb };
}

/** What tells an object and its version apart from others: the rest of its metadata is not kept. */
function identity({ name, namespace, uid, resourceVersion }: ObjectMeta): ObjectMeta {
  return { name, uid, resourceVersion, ...(namespace === undefined ? {} : { namespace }) };
}

/** What is wrong with a cached record, in words for who edits it. */
export function problemOf(object: CachedKey | CachedRecord): string | undefined {
  if (!object.parsed.ok) return object.parsed.problem;
  return "access" in object ? object.access.problem : undefined;
}
