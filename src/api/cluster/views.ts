import { IGNORE_WINDOW_ANNOTATION } from "../../crd/names.ts";
import type { PipeScaling } from "../../crd/pipe-scaling.ts";
import { sizeIn } from "../../crd/size-fields.ts";
import { type AccessList, accessListOf } from "../../domain/access-list.ts";
import type { BackupPolicy } from "../../domain/backup-policy.ts";
import { type Boost, boostAt } from "../../domain/boost.ts";
import { parseInstant } from "../../domain/instant.ts";
import type { Size } from "../../domain/size.ts";
import { shared } from "../../kube/memoized.ts";
import {
  type ConfigMap,
  identityOf,
  type KubeObject,
  type ObjectMeta,
  type Secret,
} from "../../kube/objects.ts";
import { type ApiKey, parseApiKey } from "../../records/api-key.ts";
import { parseBackup } from "../../records/backup.ts";
import { type KeyUsage, parseKeyUsage } from "../../records/key-usage.ts";
import { type RecordKind, recordKindOf } from "../../records/kinds.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL, recordLabels } from "../../records/labels.ts";
import { type Members, parseMembers } from "../../records/members.ts";
import { type Organization, parseOrganization } from "../../records/organization.ts";
import { describeProblems, type Parsed } from "../../records/parse.ts";
import { parseService, type Service } from "../../records/service.ts";
import { type Progress, progressOf, unendedBoost } from "./progress.ts";

/**
 * Reduced forms of the cluster's objects that the API keeps in memory. Each object is parsed once, when it enters the
 * cache. The view of a malformed object contains its problem, so that it fails only the requests about it.
 */

export interface KeyView extends KubeObject {
  readonly parsed: Parsed<ApiKey>;
  readonly access: AccessList;
}

/** A record that the API writes. */
export interface WrittenView extends KubeObject {
  readonly kind: RecordKind;
  /** The labels of records that this one lacks, if a person created it without them. */
  readonly missingLabels: readonly string[];
}

export interface OrganizationView extends KubeObject {
  readonly kind: "organization";
  readonly parsed: Parsed<Organization>;
}

export interface ServiceView extends KubeObject {
  readonly kind: "service";
  /** From the label, so that even a malformed service is visible only to its own organization. */
  readonly organizationId: string | undefined;
  readonly parsed: Parsed<Service>;
}

export interface MembersView extends WrittenView {
  readonly kind: "members";
  readonly members: Members;
}

export interface BackupView extends WrittenView {
  readonly kind: "backup";
  readonly parsed: Parsed<BackupPolicy>;
}

export interface KeyUsageView extends WrittenView {
  readonly kind: "key-usage";
  readonly usage: KeyUsage;
}

/** The part of a record that the API keeps. */
export type RecordView = ReturnType<(typeof VIEWS)[RecordKind]>;

/** The view of a record of this kind. */
export type ViewOf<K extends RecordKind> = Extract<RecordView, { readonly kind: K }>;

export interface PipeScalingView extends KubeObject {
  readonly suspended: boolean;
  /** The size in the spec, if it has one. */
  readonly requested: Size | undefined;
  /** The last size that every pipe had at the same time; `undefined` before the first. */
  readonly effective: Size | undefined;
  /** Until this time, the rollout window holds nothing back. */
  readonly windowIgnoredUntilMs: number | undefined;
  /** Replicas of all pipes together, as the controller last counted them. */
  readonly replicas: number | undefined;
  /** The progress while no boost is in effect. */
  readonly progress: Progress;
  /** The boost in the spec, unless its end has been reported or cannot be parsed. */
  readonly boosted: BoostView | undefined;
}

interface BoostView extends Boost {
  /** The progress while the boost is in effect. */
  readonly progress: Progress;
}

export function toKeyView(raw: Secret): KeyView {
  const parsed = parseApiKey(raw.metadata.name, raw.metadata.labels, raw.data);
  return {
    metadata: withDeletion(raw.metadata),
    parsed,
    access: accessListOf(parsed.ok ? parsed.value.ipAccessList : []),
  };
}

/** The identity of an object, and the time of a deletion that waits for a finalizer, also that of a foreground deletion. */
function withDeletion(metadata: ObjectMeta) {
  const { deletionTimestamp } = metadata;
  return { ...identityOf(metadata), ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) };
}

/** Returns true if the PipeScalings of a namespace are watched. */
type ServesNamespace = (namespace: string) => boolean;

export function toRecordView(raw: ConfigMap, servesNamespace: ServesNamespace): RecordView {
  const kind = recordKindOf(raw.metadata.labels);
  if (kind === undefined) throw new Error("the ConfigMap is no record, although it was selected");
  return VIEWS[kind](raw, servesNamespace);
}

const VIEWS = {
  organization: toOrganizationView,
  service: toServiceView,
  members: toMembersView,
  backup: toBackupView,
  "key-usage": toKeyUsageView,
} satisfies {
  readonly [K in RecordKind]: (raw: ConfigMap, servesNamespace: ServesNamespace) => { readonly kind: K };
};

function toOrganizationView({ metadata, data }: ConfigMap): OrganizationView {
  return {
    kind: "organization",
    metadata: identityOf(metadata),
    parsed: parseOrganization(metadata.name, data),
  };
}

export function toMembersView({ metadata, data }: ConfigMap): MembersView {
  return {
    kind: "members",
    metadata: identityOf(metadata),
    members: parseMembers(metadata.name, data),
    missingLabels: missingLabels(metadata),
  };
}

export function toBackupView({ metadata, data }: ConfigMap): BackupView {
  return {
    kind: "backup",
    metadata: withDeletion(metadata),
    parsed: parseBackup(metadata.name, data),
    missingLabels: missingLabels(metadata),
  };
}

export function toKeyUsageView({ metadata, data }: ConfigMap): KeyUsageView {
  return {
    kind: "key-usage",
    metadata: identityOf(metadata),
    usage: parseKeyUsage(metadata.name, data),
    missingLabels: missingLabels(metadata),
  };
}

function missingLabels({ labels = {} }: ObjectMeta): readonly string[] {
  return [RESOURCE_LABEL, ORGANIZATION_LABEL].filter((label) => !(label in labels));
}

/**
 * Returns the labels that the record lacks. The others stay, because the API may not change them: after a service has
 * moved to another organization, its backup settings keep the label of the earlier one, and a person can have written
 * any. The API finds these records by their names.
 */
export function labelsToAdd(
  { kind, missingLabels }: WrittenView,
  organizationId: string,
): Record<string, string> {
  const labels = Object.entries(recordLabels(kind, organizationId));
  return Object.fromEntries(labels.filter(([label]) => missingLabels.includes(label)));
}

function toServiceView({ metadata, data }: ConfigMap, servesNamespace: ServesNamespace): ServiceView {
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
            problem: `namespace: ${parsed.value.namespace} is not a namespace that this API watches`,
          }
        : parsed,
  };
}

export type PipeScalingResource = PipeScaling & KubeObject;

export function toPipeScalingView(raw: PipeScalingResource): PipeScalingView {
  const { metadata, spec, status } = raw;
  const { namespace = "", annotations } = metadata;
  const windowIgnoredUntilMs = parseInstant(annotations?.[IGNORE_WINDOW_ANNOTATION]);
  const boost = unendedBoost(raw);
  return {
    metadata: { ...withDeletion(metadata), namespace: shared(namespace) },
    suspended: spec?.suspend === true,
    requested: shared(spec && sizeIn(spec)),
    effective: shared(status?.effective && sizeIn(status.effective)),
    windowIgnoredUntilMs: Number.isNaN(windowIgnoredUntilMs) ? undefined : windowIgnoredUntilMs,
    replicas: status?.replicas,
    progress: progressOf(raw),
    boosted: boost && {
      size: shared(boost.size),
      untilMs: boost.untilMs,
      progress: progressOf(raw, boost),
    },
  };
}

/** Returns the boost in effect at a time, if any, and the progress at that time. */
export function atTime({ progress, boosted }: Pick<PipeScalingView, "progress" | "boosted">, nowMs: number) {
  const boost = boostAt(boosted, nowMs);
  return { boost, progress: (boost && boosted?.progress) ?? progress };
}

/** Returns the problem of a malformed record, for the person who edits it; `undefined` for a well-formed record. */
export function problemOf(object: KeyView | RecordView): string | undefined {
  if ("members" in object) return problemsIn(object.members);
  if ("usage" in object) return problemsIn(object.usage);
  if (!object.parsed.ok) return object.parsed.problem;
  return "access" in object ? object.access.problem : undefined;
}

function problemsIn(entries: ReadonlyMap<string, Parsed<unknown>>): string | undefined {
  const problems = new Set([...entries.values()].flatMap((entry) => (entry.ok ? [] : [entry.problem])));
  return problems.size === 0 ? undefined : describeProblems([...problems]);
}
