import { randomUUID } from "node:crypto";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { API_FIELD_MANAGER, API_VERSION, KIND, PIPE_SCALINGS } from "../../src/crd/names.ts";
import { BOOST_REQUEST_ANNOTATION, REQUEST_ANNOTATION } from "../../src/crd/scaling-request.ts";
import type { KubeClient, KubeRequest } from "../../src/kube/client.ts";
import { CONFIG_MAPS, collectionPath, objectPath } from "../../src/kube/paths.ts";
import { backupConfigMap } from "../../src/records/backup.ts";
import { keyUsageConfigMap } from "../../src/records/key-usage.ts";
import { recordLabels } from "../../src/records/labels.ts";
import { membersConfigMap } from "../../src/records/members.ts";
import { PatientClient } from "../support/patient-client.ts";
import { clientOf, install, prepareRelease, type Release, remove } from "./accounts.ts";
import { dryRunOf, expectDenied } from "./denials.ts";

// Each test sends a request with the token of the API to the API server, as a thief could.
const ORGANIZATION = randomUUID();
const SERVICE = randomUUID();
const JOINED = new Date("2026-01-01T00:00:00Z");
const ADA = { userId: "ada", name: "Ada", email: "ada@example.com", role: "admin", joinedAt: JOINED };
const POLICY = { periodInHours: 48, retentionPeriodInHours: 48, startTime: "3:00" } as const;
const MEMBERS = membersConfigMap(ORGANIZATION, [ADA, { ...ADA, userId: "bob", role: "viewer" }]);
const BACKUP = backupConfigMap(SERVICE, ORGANIZATION, POLICY);
const USAGE = keyUsageConfigMap(ORGANIZATION, new Map([[randomUUID(), JOINED]]));
const RECORDS = { members: MEMBERS, backup: BACKUP, usage: USAGE };
/** An administrator has added a key. */
const OTHER = backupConfigMap(randomUUID(), ORGANIZATION, POLICY);
const ANNOTATED = { ...OTHER, data: { ...OTHER.data, note: "by an administrator" } };
/** Objects of another application, whose names begin or end like those of records. */
const FOREIGN = {
  members: "members-of-another-app",
  backup: `app-backup-${randomUUID()}`,
  "key-usage": `key-usage-${randomUUID()}-copy`,
} as const;
/** Records that an administrator created without labels. */
const UNLABELED = {
  members: `members-${randomUUID()}`,
  backup: `backup-${randomUUID()}`,
  "key-usage": `key-usage-${randomUUID()}`,
} as const;

const BOOST = { replicaCpuMillicores: 8000, replicaMemoryGb: 32, until: "2030-01-01T00:00:00Z" };

/** Patches with the field manager and the patch type of the API. */
const MERGE = {
  query: { fieldManager: API_FIELD_MANAGER },
  patchType: "application/merge-patch+json",
} as const;

let cluster: Cluster;
let release: Release;
let api: KubeClient;

beforeAll(async () => {
  cluster = await sharedCluster();
  release = await prepareRelease(cluster);
  await install(cluster, release, "--set", "crds.enabled=false");
  api = await clientOf(cluster, release, "api");
  await apply(cluster, [
    ...Object.values(RECORDS).map((record) => ({
      ...record,
      metadata: {
        ...record.metadata,
        namespace: release.records,
        annotations: { "example.com/team": "data" },
      },
    })),
    ...[ANNOTATED.metadata, ...Object.values(FOREIGN).map((name) => ({ name }))].map((metadata) => ({
      ...ANNOTATED,
      metadata: { ...metadata, namespace: release.records },
    })),
    ...Object.values(UNLABELED).map((name) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace: release.records },
    })),
    {
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: { name: SERVICE, namespace: release.pipes, annotations: { "example.com/team": "data" } },
      spec: { replicaCpuMillicores: 1000, replicaMemoryGb: 4, strategy: "Rollout" },
    },
  ]);
  const isDenied = async (outcome: Promise<string>) => (await outcome).includes("ValidatingAdmissionPolicy");
  await waitFor(() => isDenied(patchRecord("members", { data: { eve: "a" } })), {
    what: "the policy for records to take effect",
  });
  await waitFor(() => isDenied(patchScaling({ spec: { suspend: true } })), {
    what: "the policy for PipeScalings to take effect",
  });
});
afterAll(async () => {
  await api?.close();
  if (release) await remove(cluster, release);
});

function patchRecord(record: keyof typeof RECORDS, body: object): Promise<string> {
  const path = objectPath(CONFIG_MAPS, release.records, RECORDS[record].metadata.name);
  return dryRunOf(api, { method: "PATCH", path, ...MERGE, body });
}

function create(record: object): Promise<string> {
  const path = collectionPath(CONFIG_MAPS, release.records);
  return dryRunOf(api, { method: "POST", path, query: MERGE.query, body: record });
}

function patchScaling(body: object): Promise<string> {
  return dryRunOf(api, { ...scaling(), ...MERGE, body });
}

function scaling(): Pick<KubeRequest, "method" | "path"> {
  return { method: "PATCH", path: objectPath(PIPE_SCALINGS, release.pipes, SERVICE) };
}

const OWNER = { apiVersion: "v1", kind: "ConfigMap", name: "absent", uid: randomUUID() };

/** Changes of metadata that no process needs, and what the rule that rejects them is about. */
const METADATA: readonly [string, object, string?][] = [
  ["owners, after which the garbage collector deletes the object", { ownerReferences: [OWNER] }],
  ["finalizers", { finalizers: ["example.com/never"] }],
  ["labels of others", { labels: { "example.com/team": "other" } }],
  ["annotations of others", { annotations: { "example.com/team": "other" } }],
  ["the removal of an annotation of others", { annotations: { "example.com/team": null } }],
  ["annotations of 200 kB", { annotations: { "example.com/large": "a".repeat(200_000) } }],
  ["field managers, to none", { managedFields: [{}] }, "field managers"],
];

describe("with the token of the API, an update of a PipeScaling", () => {
  it("may apply a size with the request for it", async () => {
    const metadata = { annotations: { [REQUEST_ANNOTATION]: "{}" } };
    const spec = { replicaCpuMillicores: 2000, replicaMemoryGb: 8 };
    const outcome = await dryRunOf(api, {
      ...scaling(),
      query: { fieldManager: API_FIELD_MANAGER, force: true },
      patchType: "application/apply-patch+yaml",
      body: { apiVersion: API_VERSION, kind: KIND, metadata: { name: SERVICE, ...metadata }, spec },
    });
    expect(outcome).toBe("accepted");
  });

  it("may apply a size where another manager set nothing but a size and the request for it", async () => {
    const name = randomUUID();
    const metadata = { name, annotations: { [REQUEST_ANNOTATION]: "{}" } };
    const admin = await PatientClient.of(cluster);
    await admin.json({
      method: "POST",
      path: collectionPath(PIPE_SCALINGS, release.pipes),
      query: { fieldManager: "velero" },
      body: {
        apiVersion: API_VERSION,
        kind: KIND,
        metadata,
        spec: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
      },
    });
    await admin.close();
    const outcome = await dryRunOf(api, {
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, release.pipes, name),
      ...MERGE,
      body: {
        metadata: { annotations: { [REQUEST_ANNOTATION]: '{"a":1}' } },
        spec: { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
      },
    });
    expect(outcome).toBe("accepted");
  });

  it("may set a boost with the request for it", async () => {
    const annotations = { [BOOST_REQUEST_ANNOTATION]: "{}" };
    expect(await patchScaling({ metadata: { annotations }, spec: { boost: BOOST } })).toBe("accepted");
  });

  it("may replace and remove a boost that another manager set with a size", async () => {
    const name = randomUUID();
    const admin = await PatientClient.of(cluster);
    await admin.json({
      method: "PATCH",
      path: objectPath(PIPE_SCALINGS, release.pipes, name),
      query: { fieldManager: "argocd-controller" },
      patchType: "application/apply-patch+yaml",
      body: {
        apiVersion: API_VERSION,
        kind: KIND,
        metadata: { name },
        spec: { replicaCpuMillicores: 1000, replicaMemoryGb: 4, boost: BOOST },
      },
    });
    await admin.close();
    const path = objectPath(PIPE_SCALINGS, release.pipes, name);
    const boosts = [{ ...BOOST, until: "2030-02-01T00:00:00Z" }, null];
    for (const boost of boosts) {
      const outcome = await dryRunOf(api, { method: "PATCH", path, ...MERGE, body: { spec: { boost } } });
      expect(outcome).toBe("accepted");
    }
  });

  it("may not write a boost in the name of another field manager", async () => {
    const outcome = await dryRunOf(api, {
      ...scaling(),
      ...MERGE,
      query: { fieldManager: "kubectl" },
      body: { spec: { boost: BOOST } },
    });
    expectDenied(outcome, "field managers of a PipeScaling");
  });

  it.each(METADATA)("may not change %s", async (_, metadata, part = "metadata") => {
    expectDenied(await patchScaling({ metadata }), `${part} of a PipeScaling`);
  });

  it.each([REQUEST_ANNOTATION, BOOST_REQUEST_ANNOTATION])(
    "may write a %s of 1024 characters, but not more",
    async (name) => {
      const write = (length: number) =>
        patchScaling({ metadata: { annotations: { [name]: "a".repeat(length) } } });
      expect(await write(1024)).toBe("accepted");
      expectDenied(await write(1025), "at most 1024 characters");
    },
  );

  it.each([
    ["suspend", { suspend: true }],
    ["strategy", { strategy: null }],
  ])("may not change %s", async (_, spec) => {
    expectDenied(await patchScaling({ spec }), "only the size and the boost in the spec");
  });
});

describe("with the token of the API, an update of a record", () => {
  it.each<[string, keyof typeof RECORDS, object]>([
    ["remove a member", "members", { ada: null }],
    ["change the backup settings", "backup", { backupPeriodInHours: "24", backupStartTime: null }],
    ["record the use of a key", "usage", { [randomUUID()]: JOINED.toISOString() }],
    ["write a setting of 8 characters", "backup", { backupStartTime: "a".repeat(8) }],
    ["write an ID of 64 characters and a time of 24", "usage", { ["a".repeat(64)]: "a".repeat(24) }],
  ])("may %s", async (_, record, data) => {
    expect(await patchRecord(record, { data })).toBe("accepted");
  });

  it.each(METADATA)("may not change %s", async (_, metadata, part = "metadata") => {
    expectDenied(await patchRecord("members", { metadata }), `${part} of a record`);
  });

  it.each<[string, keyof typeof RECORDS, object, string]>([
    ["add a member", "members", { eve: MEMBERS.data["ada"] }, "only remove members"],
    ["change a member", "members", { bob: "a" }, "only remove members"],
    ["write a member of 900 kB", "members", { bob: "a".repeat(900_000) }, "only remove members"],
    ["write another key of backup settings", "backup", { evil: "a" }, "only the three backup settings"],
    ["write a setting of 9 characters", "backup", { backupStartTime: "a".repeat(9) }, "only the three"],
    ["write a key usage of 25 characters", "usage", { a: "a".repeat(25) }, "only times of at most 24"],
    ["write an ID of 65 characters", "usage", { ["a".repeat(65)]: "a" }, "by IDs of at most 64"],
    [
      "write a thousand uses of keys",
      "usage",
      Object.fromEntries(Array.from({ length: 1000 }, () => [randomUUID(), JOINED.toISOString()])),
      "at most 1000 keys",
    ],
  ])("may not %s", async (_, record, data, sentence) => {
    expectDenied(await patchRecord(record, { data }), sentence);
  });

  it.each([
    ["binary data", { binaryData: { a: "YQ==" } }],
    ["immutable", { immutable: true }],
  ])("may not set %s", async (_, body) => {
    expectDenied(await patchRecord("members", body), "only the data of a record");
  });

  it("may not write in the name of another field manager", async () => {
    const path = objectPath(CONFIG_MAPS, release.records, BACKUP.metadata.name);
    const body = { data: { backupPeriodInHours: "24" } };
    const request = { method: "PATCH", path, ...MERGE, query: { fieldManager: "evil" }, body } as const;
    expectDenied(await dryRunOf(api, request), "field managers of a record");
  });

  const patchNamed = (name: string, body: object) =>
    dryRunOf(api, {
      method: "PATCH",
      path: objectPath(CONFIG_MAPS, release.records, name),
      ...MERGE,
      body,
    });

  it.each(["members", "backup", "key-usage"] as const)(
    "may not make a record of %s of an object with another name",
    async (kind) => {
      const metadata = { labels: recordLabels(kind, ORGANIZATION) };
      for (const data of [{}, { note: null }, { backupPeriodInHours: null }])
        expectDenied(await patchNamed(FOREIGN[kind], { metadata, data }), "only records of members");
    },
  );

  // A policy may take only so many steps, and then denies the write.
  it.each<[string, { readonly metadata: { readonly name: string }; readonly data: object }]>([
    [
      "members",
      membersConfigMap(
        randomUUID(),
        Array.from({ length: 1900 }, (_, index) => ({ ...ADA, userId: `${index}` })),
      ),
    ],
    [
      "uses of keys",
      keyUsageConfigMap(randomUUID(), new Map(Array.from({ length: 1000 }, () => [randomUUID(), JOINED]))),
    ],
  ])("may remove one of as many %s as a record can have, written by another manager", async (_, record) => {
    const namespace = release.records;
    const admin = await PatientClient.of(cluster);
    await admin.json({ method: "POST", path: collectionPath(CONFIG_MAPS, namespace), body: record });
    await admin.close();
    const path = objectPath(CONFIG_MAPS, namespace, record.metadata.name);
    const [first = ""] = Object.keys(record.data);
    const body = { data: { [first]: null } };
    expect(await dryRunOf(api, { method: "PATCH", path, ...MERGE, body })).toBe("accepted");
  });

  it("may remove only its own keys from backup settings", async () => {
    const { name } = ANNOTATED.metadata;
    expect(await patchNamed(name, { data: { backupPeriodInHours: null } })).toBe("accepted");
    for (const data of [{ note: null }, { note: null, backupPeriodInHours: "24" }, null])
      expectDenied(await patchNamed(name, { data }), "only the three backup settings");
  });

  it.each(["members", "backup", "key-usage"] as const)(
    "may add the labels of the organization to a record of %s that has none",
    async (kind) => {
      const name = UNLABELED[kind];
      const label = (organization: string) =>
        patchNamed(name, { metadata: { labels: recordLabels(kind, organization) } });
      expect(await label(kind === "backup" ? ORGANIZATION : name.slice(kind.length + 1))).toBe("accepted");
      // A policy cannot look up the organization of a service.
      if (kind !== "backup")
        expectDenied(await label(ORGANIZATION), "only with the organization in its name");
    },
  );

  it("may not move a record to another organization", async () => {
    const labels = recordLabels("members", randomUUID());
    expectDenied(await patchRecord("members", { metadata: { labels } }), "metadata of a record");
  });
});

describe("with the token of the API, a new record", () => {
  const named = (record: { readonly metadata: object }, name: string, metadata: object = {}) => ({
    ...record,
    metadata: { ...record.metadata, name, ...metadata },
  });

  it("may have backup settings and uses of keys", async () => {
    expect(await create(named(BACKUP, `backup-${randomUUID()}`))).toBe("accepted");
    const organization = randomUUID();
    expect(await create(keyUsageConfigMap(organization, new Map([[randomUUID(), JOINED]])))).toBe("accepted");
  });

  it.each([
    ["owners", { ownerReferences: [OWNER] }],
    ["finalizers", { finalizers: ["example.com/never"] }],
    ["labels of others", { labels: { ...BACKUP.metadata.labels, "example.com/team": "other" } }],
    ["annotations", { annotations: { "example.com/team": "other" } }],
  ])("may not have %s", async (_, metadata) => {
    expectDenied(await create(named(BACKUP, `backup-${randomUUID()}`, metadata)), "of a record");
  });

  it("may not have the label of another organization than in its name", async () => {
    const outcome = await create(named(USAGE, `key-usage-${randomUUID()}`));
    expectDenied(outcome, "only with the organization in its name");
  });

  it("may not be one of members, even without any", async () => {
    for (const members of [[], [ADA]])
      expectDenied(await create(membersConfigMap(randomUUID(), members)), "only remove members");
  });

  it("may not have binary data or be immutable", async () => {
    const record = named(BACKUP, `backup-${randomUUID()}`);
    expectDenied(await create({ ...record, binaryData: { a: "YQ==" } }), "only the data of a record");
    expectDenied(await create({ ...record, immutable: true }), "only the data of a record");
  });
});
