import { stringify } from "yaml";
import type { RolloutWindow } from "../../../src/domain/rollout-window.ts";
import { BUILT_IN_TIERS } from "../../../src/domain/tier.ts";
import { apiKeySecret } from "../../../src/records/api-key.ts";
import { backupConfigMap } from "../../../src/records/backup.ts";
import { keyUsageConfigMap } from "../../../src/records/key-usage.ts";
import { membersConfigMap } from "../../../src/records/members.ts";
import { organizationConfigMap } from "../../../src/records/organization.ts";
import { serviceConfigMap } from "../../../src/records/service.ts";
import type { DescribedRecord } from "./record-kinds.ts";

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

/** An object of each kind, made by the functions that the program writes records with. */
export const RECORD_EXAMPLES: Readonly<Record<DescribedRecord, RecordExample>> = {
  organization: withEntries(
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
  service: inRecords(
    serviceConfigMap({
      id: SERVICE_ID,
      organizationId: ORGANIZATION_ID,
      name: "orders",
      namespace: "acme-pipes",
      rolloutWindow: WINDOW,
    }),
  ),
  "api-key": inRecords(
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
  members: inRecords(
    membersConfigMap(ORGANIZATION_ID, [
      { userId: "ada", name: "Ada", email: "ada@example.com", role: "admin", joinedAt: CREATED_AT },
    ]),
  ),
  backup: inRecords(
    backupConfigMap(SERVICE_ID, ORGANIZATION_ID, {
      periodInHours: 48,
      retentionPeriodInHours: 168,
      startTime: "02:00",
    }),
  ),
  "key-usage": inRecords(
    keyUsageConfigMap(ORGANIZATION_ID, new Map([[KEY_ID, new Date("2026-02-01T08:15:00Z")]])),
  ),
  // The chart makes this one.
  tiers: {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "pipe-scaling-tiers", namespace: "pipe-scaling" },
    data: { "tiers.yaml": tiersYaml() },
  },
};

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
