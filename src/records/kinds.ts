import { backupConfigMapName, parseBackup } from "./backup.ts";
import { keyUsageConfigMapName, parseKeyUsage } from "./key-usage.ts";
import { RESOURCE_LABEL } from "./labels.ts";
import { membersConfigMapName, parseMembers } from "./members.ts";
import { organizationConfigMapName, parseOrganization } from "./organization.ts";
import type { Parsed } from "./parse.ts";
import { parseService, serviceConfigMapName } from "./service.ts";

/** The part of a ConfigMap that is parsed. */
interface RecordObject {
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>> | undefined;
  };
  readonly data?: Readonly<Record<string, string>> | undefined;
}

interface KindOfRecord {
  /** The owner, whose ID is in the name of the ConfigMap. The record is deleted with its owner. */
  readonly of: "organization" | "service";
  /** The name of the ConfigMap, from the ID of its owner. */
  readonly name: (id: string) => string;
  /** Returns one result for the record, or one for each entry if it has many. */
  readonly parse: (object: RecordObject) => Iterable<Parsed<unknown>>;
}

const KINDS = {
  organization: {
    of: "organization",
    name: organizationConfigMapName,
    parse: ({ metadata, data }) => [parseOrganization(metadata.name, data)],
  },
  service: {
    of: "service",
    name: serviceConfigMapName,
    parse: ({ metadata, data }) => [parseService(metadata.name, metadata.labels, data)],
  },
  members: {
    of: "organization",
    name: membersConfigMapName,
    parse: ({ metadata, data }) => parseMembers(metadata.name, data).values(),
  },
  backup: {
    of: "service",
    name: backupConfigMapName,
    parse: ({ metadata, data }) => [parseBackup(metadata.name, data)],
  },
  "key-usage": {
    of: "organization",
    name: keyUsageConfigMapName,
    parse: ({ metadata, data }) => parseKeyUsage(metadata.name, data).values(),
  },
} satisfies Readonly<Record<string, KindOfRecord>>;

/** The kinds of records that are ConfigMaps, by the value of their label. */
export const RECORD_KINDS: Readonly<Record<RecordKind, KindOfRecord>> = KINDS;

export type RecordKind = keyof typeof KINDS;

const kinds = new Map<string, RecordKind>(entries().map(([kind]) => [kind, kind]));

/** Returns the kind of the ConfigMap with these labels; `undefined` if it is not a record. */
export function recordKindOf(labels: Readonly<Record<string, string>> | undefined): RecordKind | undefined {
  return kinds.get(labels?.[RESOURCE_LABEL] ?? "");
}

/** The names of the records that have the ID of this owner in their names, and their kinds. */
export function recordsNamedAfter(owner: KindOfRecord["of"], id: string): ReadonlyMap<string, RecordKind> {
  return new Map(entries().flatMap(([kind, { of, name }]) => (of === owner ? [[name(id), kind]] : [])));
}

function entries(): [RecordKind, KindOfRecord][] {
  return Object.entries(RECORD_KINDS) as [RecordKind, KindOfRecord][];
}
