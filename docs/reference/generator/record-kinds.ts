import { stringify } from "yaml";
import * as z from "zod";
import type { RolloutWindow } from "../../../src/domain/rollout-window.ts";
import { BUILT_IN_TIERS } from "../../../src/domain/tier.ts";
import { apiKeyData, apiKeySecret } from "../../../src/records/api-key.ts";
import { backupConfigMap, backupConfigMapData } from "../../../src/records/backup.ts";
import { keyUsageConfigMap, keyUsageEntry } from "../../../src/records/key-usage.ts";
import { RECORD_KINDS, type RecordKind } from "../../../src/records/kinds.ts";
import { API_KEY_SECRET_TYPE, ORGANIZATION_LABEL } from "../../../src/records/labels.ts";
import { memberEntry, membersConfigMap } from "../../../src/records/members.ts";
import { organizationConfigMap, organizationData } from "../../../src/records/organization.ts";
import { serviceConfigMap, serviceData } from "../../../src/records/service.ts";
import { tierEntry } from "../../../src/records/tiers-file.ts";
import { code } from "./markdown.ts";

export type DescribedRecord = RecordKind | "api-key" | "tiers";

interface RecordExample {
  readonly apiVersion: string;
  readonly kind: string;
  readonly type?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
}

/** A section of the reference. */
interface DescribedKind {
  readonly heading: string;
  /** Kind and name of the object. */
  readonly object: string;
  readonly writtenBy: string;
  readonly purpose: string;
  /** The keys. In angle brackets: keys that are IDs or names. */
  readonly schema: z.ZodType;
  /** Made by the function that the program writes such records with. */
  readonly example: RecordExample;
  readonly faults: readonly RecordFault[];
}

/** A fault of a record, and what it does. Tests: test/api/records.test.ts and test/integration/faults/objects-records.slow.test.ts. */
interface RecordFault {
  readonly fault: string;
  readonly api: string;
  readonly controller: string;
}

const ORGANIZATION_ID = "2c7c0a3e-8f0c-4b35-9d5b-0d9e7c4b7a10";
const SERVICE_ID = "6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11";
const KEY_ID = "b3b8f2a9-5f0e-4d7a-9c1e-2a6d1f0c9e44";
const CREATED_AT = new Date("2026-01-31T12:00:00Z");
const WINDOW: RolloutWindow = {
  schedule: "0 2 * * 6",
  durationMs: 4 * 3_600_000,
  timeZone: "Europe/Berlin",
  appliesTo: "restarts",
};

const NOT_READ = "does not read it";
const KEEPS_SIZES = "pipes keep their size, rollouts that have begun complete";

export const RECORDS: Readonly<Record<DescribedRecord, DescribedKind>> = {
  organization: {
    heading: "Organization",
    object: "ConfigMap `organization-<organization id>`",
    writtenBy: "people, `pipe-scaling admin organization create`",
    purpose: "A customer. The ID in the name is a UUID in lower case.",
    schema: organizationData,
    example: withEntries(
      organizationConfigMap({
        id: ORGANIZATION_ID,
        name: "Acme",
        createdAt: CREATED_AT,
        tier: "scale",
        rolloutWindow: WINDOW,
      }),
      {
        byocConfig: stringify([{ accountName: "acme-production", id: "123456789012" }]),
        privateEndpoints: stringify([{ description: "office", id: "vpce-0a1b2c3d" }]),
      },
    ),
    faults: [
      {
        fault: "a key is malformed",
        api: "every operation with a key of this organization: 500",
        controller: `its services are Stalled with \`MalformedRecord\`: ${KEEPS_SIZES}`,
      },
      {
        fault: "`tier` names no tier",
        api: "PATCH of pipesCdcScaling, PUT of its boost, and its limits: 503; everything else works",
        controller: `its services are Stalled with \`UnknownTier\`: ${KEEPS_SIZES}`,
      },
      {
        fault: "the ConfigMap is missing",
        api: "`GET /v1/organizations` returns an empty list; every other operation: 404",
        controller: `its services are Stalled with \`UnknownOrganization\`: ${KEEPS_SIZES}`,
      },
    ],
  },
  service: {
    heading: "Service",
    object: "ConfigMap `service-<service id>`",
    writtenBy: "people, `pipe-scaling admin service create`",
    purpose: `A service of an organization, and where its pipes run. The label ${code(ORGANIZATION_LABEL)} names the organization.`,
    schema: serviceData,
    example: inRecords(
      serviceConfigMap({
        id: SERVICE_ID,
        organizationId: ORGANIZATION_ID,
        name: "orders",
        namespace: "acme-pipes",
        rolloutWindow: WINDOW,
      }),
    ),
    faults: [
      {
        fault: "a key is malformed",
        api: "operations of this service: 500; the list of services leaves it out; other services work",
        controller: `the service is Stalled with \`MalformedRecord\`: ${KEEPS_SIZES}`,
      },
      {
        fault: "the organization's label is missing or no UUID",
        api: "operations of this service: 404",
        controller: `the service is Stalled with \`MalformedRecord\`: ${KEEPS_SIZES}`,
      },
      {
        fault: "the label names an organization without a record",
        api: "operations of this service: 404",
        controller: `the service is Stalled with \`UnknownOrganization\`: ${KEEPS_SIZES}`,
      },
      {
        fault: "`namespace` is not one that the processes watch (value `pipes.namespaces`)",
        api: "operations of this service: 500",
        controller: "sees no pipe of the service",
      },
      {
        fault: "the ConfigMap is missing",
        api: "operations of this service: 404",
        controller: `the service is Stalled with \`UnknownService\`: ${KEEPS_SIZES}`,
      },
    ],
  },
  "api-key": {
    heading: "API key",
    object: `Secret \`api-key-<hexadecimal SHA-256 of the key ID>\` of type ${code(API_KEY_SECRET_TYPE)}`,
    writtenBy: "people, `pipe-scaling admin key create`; the API only reads it",
    purpose: `A key of the organization that the label ${code(ORGANIZATION_LABEL)} names. The Secret holds neither the key ID nor the secret, only hashes of them and the last 4 characters of the key ID.`,
    schema: apiKeyData,
    example: inRecords(
      apiKeySecret(
        {
          id: KEY_ID,
          organizationId: ORGANIZATION_ID,
          name: "ci",
          roles: ["admin"],
          createdAt: CREATED_AT,
          expireAt: new Date("2030-01-31T12:00:00Z"),
          ipAccessList: [{ description: "office", source: "203.0.113.0/24" }],
        },
        { keyId: "EXAMPLEKEYID0000abcd", keySecret: "not-a-real-secret" },
      ),
    ),
    faults: [
      {
        fault: "a key of the Secret is malformed, or the organization's label is missing or no UUID",
        api: "requests with this API key: 401; the list of keys leaves it out; other keys work",
        controller: NOT_READ,
      },
      {
        fault:
          "the name or the type of the Secret is another one, for example because a tool appended a hash",
        api: "requests with this API key: 401; the list of keys leaves it out; other keys work",
        controller: NOT_READ,
      },
      {
        fault: "an address in `ipAccessList` is malformed",
        api: "requests with this API key: 403 from every address",
        controller: NOT_READ,
      },
    ],
  },
  members: {
    heading: "Members",
    object: "ConfigMap `members-<organization id>`",
    writtenBy: "people, `pipe-scaling admin member add`; the API only removes members",
    purpose:
      "The users of an organization. There is one key for each user: the userId, in which every byte outside of `[-.a-zA-Z0-9]` is written as `_` and two upper-case hexadecimal digits. `ada@example.com` becomes `ada_40example.com`. Each value is a YAML map with these keys:",
    schema: z.object({ "<encoded userId>": memberEntry }),
    example: inRecords(
      membersConfigMap(ORGANIZATION_ID, [
        { userId: "ada", name: "Ada", email: "ada@example.com", role: "admin", joinedAt: CREATED_AT },
      ]),
    ),
    faults: [
      {
        fault: "an entry is malformed, or longer than 2,048 bytes",
        api: "the list omits it; removing this member: 500, and the entry does not count as an admin; other members can be removed. After 20 such entries, the same holds for all others",
        controller: NOT_READ,
      },
      {
        fault: "the name is not `members-` and the lowercase UUID of the organization",
        api: "does not read it: the organization has no members",
        controller: NOT_READ,
      },
    ],
  },
  backup: {
    heading: "Backup settings",
    object: "ConfigMap `backup-<service id>`",
    writtenBy: "the API",
    purpose:
      "The backup settings of a service that differ from the defaults. Without the record all defaults apply.",
    schema: backupConfigMapData,
    example: inRecords(
      backupConfigMap(SERVICE_ID, ORGANIZATION_ID, {
        periodInHours: 48,
        retentionPeriodInHours: 168,
        startTime: "02:00",
      }),
    ),
    faults: [
      {
        fault: "a key is malformed, or a start time contradicts the period",
        api: "GET and PATCH of backupConfiguration: 500; other operations of the service work",
        controller: NOT_READ,
      },
    ],
  },
  "key-usage": {
    heading: "Key usage",
    object: "ConfigMap `key-usage-<organization id>`",
    writtenBy: "the API",
    purpose:
      "The time at which each API key was last used. There is one key for each API key: its resource ID (`id` in the Secret).",
    schema: z.object({ "<id of the API key>": keyUsageEntry }),
    example: inRecords(
      keyUsageConfigMap(ORGANIZATION_ID, new Map([[KEY_ID, new Date("2026-02-01T08:15:00Z")]])),
    ),
    faults: [
      {
        fault: "an entry is malformed",
        api: "`usedAt` of this API key is absent; every operation works",
        controller: NOT_READ,
      },
      {
        fault: "the name is not `key-usage-` and the lowercase UUID of the organization",
        api: "does not read it, and writes another one",
        controller: NOT_READ,
      },
    ],
  },
  tiers: {
    heading: "Tiers",
    object: "ConfigMap `<release>-tiers` in the namespace of the release, key `tiers.yaml`",
    writtenBy: "the chart, from its value `tiers`",
    purpose:
      "The tiers that the records of organizations name. It is not a record: both processes read it as a file when they start (`--tiers-file`), and the chart restarts them when it changes. It is a YAML map from the name of a tier to a map with these keys:",
    schema: z.object({
      "<name of the tier>": tierEntry.meta({ description: "One tier." }),
    }),
    // The chart makes this one.
    example: {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "pipe-scaling-operator-tiers", namespace: "pipe-scaling-system" },
      data: { "tiers.yaml": tiersYaml() },
    },
    faults: [
      {
        fault: "the file is malformed",
        api: "does not start, and prints a sentence with the path and the fault",
        controller: "does not start, likewise",
      },
    ],
  },
};

/** In the order of the page. */
export const DESCRIBED_RECORDS: readonly DescribedRecord[] = [
  ...(Object.keys(RECORD_KINDS) as RecordKind[]),
  "api-key",
  "tiers",
];

function inRecords<T extends { readonly metadata: object }>(record: T) {
  return { ...record, metadata: { ...record.metadata, namespace: "pipe-scaling-records" } };
}

function withEntries<
  T extends { readonly metadata: object; readonly data: Readonly<Record<string, string>> },
>(record: T, entries: Readonly<Record<string, string>>) {
  return inRecords({ ...record, data: { ...record.data, ...entries } });
}

function tiersYaml(): string {
  const tiers = [...BUILT_IN_TIERS.values()].map(({ name, defaultSize, maximumSize }) => [
    name,
    { defaultCpuMillicores: defaultSize.cpuMillicores, maximumCpuMillicores: maximumSize.cpuMillicores },
  ]);
  return stringify(Object.fromEntries(tiers));
}
