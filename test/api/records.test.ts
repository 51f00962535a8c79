import { randomUUID } from "node:crypto";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { beforeAll, describe, expect, it } from "vitest";
import { errorEnvelope } from "../../src/api/resources/envelopes.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, collectionPath, objectPath, SECRETS } from "../../src/kube/paths.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL, recordLabels } from "../../src/records/labels.ts";
import { type KeyRecord, keyRecord, organizationRecord, serviceRecord } from "../support/fixtures/records.ts";
import type { ApiRequest, ApiResponse } from "./client.ts";
import { clientOfText, PIPE_SCALINGS } from "./environment.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";
import { membersRecord } from "./member-records.ts";

/*
 * Users edit records. A malformed record affects only the requests that depend on it: they get a documented response,
 * and the record is logged once per version.
 */

const environment = setUpEnvironment("records");
let sound: Tenant;
const tenants = new Map<string, Tenant>();

beforeAll(async () => {
  sound = await addTenant();
  for (const [what, malformed] of TABLE) tenants.set(what, await addTenant(malformed));
});
const api = setUpApi(environment);

interface Tenant {
  readonly organizationId: string;
  readonly service: string;
  readonly key: KeyRecord;
}

type Data = Readonly<Record<string, string>>;

interface Malformed {
  readonly organization?: Data;
  readonly service?: Data;
  readonly serviceLabels?: Data;
  readonly members?: Data;
  readonly backup?: Data;
  readonly usage?: Data;
  readonly key?: Data;
  /** Appended to the name of the key's Secret. */
  readonly keySuffix?: string;
}

function withData<T extends { readonly data: object }>(record: T, data: Data = {}): T {
  return { ...record, data: { ...record.data, ...data } };
}

/** An organization with records of every kind, some of which may be malformed. */
async function addTenant(malformed: Malformed = {}): Promise<Tenant> {
  const organization = organizationRecord({}, malformed.organization);
  const organizationId = organization.metadata.name.slice("organization-".length);
  const made = serviceRecord({ organizationId, namespace: environment.pipes });
  const service = made.metadata.name.slice("service-".length);
  const labels = { ...made.metadata.labels, ...malformed.serviceLabels };
  const { record, ...credentials } = keyRecord({ organizationId });
  const metadata = { ...record.metadata, name: `${record.metadata.name}${malformed.keySuffix ?? ""}` };
  const key = { ...credentials, record: { ...record, metadata } };
  const configMap = (name: string, kind: "backup" | "key-usage", data: Data = {}) => ({
    kind: "ConfigMap",
    metadata: { name, labels: recordLabels(kind, organizationId) },
    data,
  });
  await environment.addScaling(service, {}, 2);
  const records = [
    organization,
    withData({ ...made, metadata: { ...made.metadata, labels } }, malformed.service),
    withData(membersRecord(organizationId, { ada: "admin", bob: "developer" }), malformed.members),
    configMap(`backup-${service}`, "backup", malformed.backup),
    configMap(`key-usage-${organizationId}`, "key-usage", malformed.usage),
    { ...key.record, stringData: { ...key.record.stringData, ...malformed.key } },
  ];
  for (const record of records) await environment.addRecord(record);
  return { organizationId, service, key };
}

const PATCH = { method: "PATCH", headers: { "Content-Type": "application/json" } };

/** Operations by their names in the table below. */
function operationsOf({ organizationId, service }: Tenant): Readonly<Record<string, ApiRequest>> {
  const root = `/v1/organizations/${organizationId}`;
  const scaling = `${root}/services/${service}/pipesCdcScaling`;
  const backup = `${root}/services/${service}/backupConfiguration`;
  return {
    organizations: { path: "/v1/organizations" },
    keys: { path: `${root}/keys` },
    scaling: { path: scaling },
    scale: { ...PATCH, path: scaling, body: '{"replicaCpuMillicores":4000}' },
    backup: { path: backup },
    "set backup": { ...PATCH, path: backup, body: '{"backupPeriodInHours":12}' },
    "remove ada": { method: "DELETE", path: `${root}/members/ada` },
    "remove bob": { method: "DELETE", path: `${root}/members/bob` },
  };
}

/** Statuses for a tenant with valid records, in which ada is the only admin. */
const SOUND: Readonly<Record<string, number>> = {
  organizations: 200,
  keys: 200,
  scaling: 200,
  scale: 200,
  backup: 200,
  "set backup": 200,
  "remove ada": 400,
  "remove bob": 200,
};

const all = (status: number) =>
  Object.fromEntries(Object.keys(SOUND).map((operation) => [operation, status]));
const ofService = (status: number) => ({
  scaling: status,
  scale: status,
  backup: status,
  "set backup": status,
});
const ofBackup = { backup: 500, "set backup": 500 };
const ofBob = { "remove bob": 500 };

/** Aliases in ten levels of ten: a few hundred bytes that expand to gigabytes. */
const BOMB = `a0: &a0 x\n${Array.from({ length: 10 }, (_, at) => {
  const aliases = Array.from({ length: 10 }, () => `*a${at}`);
  return `a${at + 1}: &a${at + 1} [${aliases.join(", ")}]\n`;
}).join("")}`;

const BOB = "name: Bob\nemail: b@example.com\nrole: developer\njoinedAt: 2026-02-01T00:00:00Z\n";

type Row = readonly [what: string, malformed: Malformed, responses: Readonly<Record<string, number>>];

/** Malformed records, with the statuses that differ from a tenant with valid records. */
const TABLE: readonly Row[] = [
  ["an organization without a name", { organization: { name: "" } }, all(500)],
  ["an organization without a tier", { organization: { tier: "" } }, all(500)],
  [
    "an organization with an invalid creation time",
    { organization: { createdAt: "2026-13-01T00:00:00Z" } },
    all(500),
  ],
  ["an organization with invalid YAML", { organization: { byocConfig: "[" } }, all(500)],
  ["an organization with YAML of another type", { organization: { byocConfig: "name: x" } }, all(500)],
  ["an organization with an alias bomb", { organization: { privateEndpoints: BOMB } }, all(500)],
  ["an undefined tier", { organization: { tier: "platinum" } }, { scale: 503 }],
  ["a service without a namespace", { service: { namespace: "" } }, ofService(500)],
  ["a service with an invalid namespace", { service: { namespace: "../kube-system" } }, ofService(500)],
  ["a service without a name", { service: { name: "" } }, ofService(500)],
  [
    "a service with an empty organization label",
    { serviceLabels: { [ORGANIZATION_LABEL]: "" } },
    ofService(404),
  ],
  [
    "a service with an invalid organization label",
    { serviceLabels: { [ORGANIZATION_LABEL]: "acme" } },
    ofService(404),
  ],
  [
    "a service of another organization",
    { serviceLabels: { [ORGANIZATION_LABEL]: randomUUID() } },
    ofService(404),
  ],
  ["a member with invalid YAML", { members: { bob: "userId: [" } }, ofBob],
  ["a member with an alias bomb", { members: { bob: BOMB } }, ofBob],
  ["a member that is a list", { members: { bob: "- userId: bob" } }, ofBob],
  ["a member without a role", { members: { bob: "userId: bob\n" } }, ofBob],
  ["a member with the ID of another user", { members: { bob: `userId: eve\n${BOB}` } }, ofBob],
  ["a member with two entries", { members: { bob2: `userId: bob\n${BOB}` } }, {}],
  ["a member with a duplicate field", { members: { bob: `userId: bob\nrole: admin\n${BOB}` } }, ofBob],
  [
    "the only admin as a malformed member",
    { members: { ada: "userId: ada\nrole: admin" } },
    { "remove ada": 500 },
  ],
  ["a backup period that is not a number", { backup: { backupPeriodInHours: "daily" } }, ofBackup],
  ["a backup period that is not allowed", { backup: { backupPeriodInHours: "7" } }, ofBackup],
  ["a backup retention of half a day", { backup: { backupRetentionPeriodInHours: "12" } }, ofBackup],
  ["a backup start time that is not a full hour", { backup: { backupStartTime: "5:30" } }, ofBackup],
  [
    "a start time with a period that does not allow it",
    { backup: { backupPeriodInHours: "12", backupStartTime: "5:00" } },
    ofBackup,
  ],
  ["a key usage with an invalid time", { usage: { [randomUUID()]: "yesterday" } }, {}],
  ["a key to whose name a tool appended a hash", { keySuffix: "-k7h2f9m4t5" }, all(401)],
  ["a key with an invalid ID", { key: { id: "1" } }, all(401)],
  ["a key without a name", { key: { name: "" } }, all(401)],
  ["a key with a short suffix", { key: { keySuffix: "abc" } }, all(401)],
  ["a key without a hash", { key: { secretHash: "" } }, all(401)],
  ["a key with a hash of another kind", { key: { secretHash: `sha1:${"0".repeat(40)}` } }, all(401)],
  ["a key with an unknown state", { key: { state: "Enabled" } }, all(401)],
  ["a key whose roles are not a list", { key: { roles: "admin" } }, all(401)],
  ["a key with an alias bomb as roles", { key: { roles: BOMB } }, all(401)],
  ["a key with an invalid creation time", { key: { createdAt: "yesterday" } }, all(401)],
  ["a key with an invalid expiry time", { key: { expireAt: "never" } }, all(401)],
  ["a key whose addresses are not a list", { key: { ipAccessList: "10.0.0.0/8" } }, all(401)],
  ["a key with an invalid address", { key: { ipAccessList: "- source: office" } }, all(403)],
];

/** Rows with well-formed records that refer to an object that does not exist. */
const READABLE = new Set(["an undefined tier", "a service of another organization"]);

/** Returns the version of each object, except key usage, which the API writes at any time. */
async function inventory(): Promise<string[]> {
  const labelSelector = `${RESOURCE_LABEL},${RESOURCE_LABEL}!=key-usage`;
  const collections = [
    { path: collectionPath(CONFIG_MAPS, environment.records), query: { labelSelector } },
    { path: collectionPath(SECRETS, environment.records), query: { labelSelector } },
    { path: collectionPath(PIPE_SCALINGS, environment.pipes) },
  ];
  const lists = collections.map((request) => environment.admin.json<{ items: KubeObject[] }>(request));
  const found = (await Promise.all(lists)).flatMap(({ items }) => items);
  return found.map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`);
}

/** Returns the versions of a tenant's malformed records in the log. */
function loggedVersions({ organizationId, service, key }: Tenant): unknown[] {
  const names = [organizationId, service, key.record.metadata.name];
  return api.log
    .filter(
      ({ msg, record }) => msg === "malformed record" && names.some((name) => String(record).endsWith(name)),
    )
    .map(({ resourceVersion }) => resourceVersion);
}

function send({ key }: Tenant, request: ApiRequest): Promise<ApiResponse> {
  return api.send({ ...request, authorization: key.authorization });
}

const OUR_FAULT = "Something went wrong on our side. Quote the request ID when you report it.";

describe("a malformed record affects only dependent requests, changes nothing, and is logged once per version", () => {
  it.each(TABLE)("%s", async (what, _malformed, responses) => {
    const tenant = tenants.get(what);
    if (!tenant) throw new Error(`there is no tenant with ${what}`);
    const operations = Object.entries(operationsOf(tenant)).map(([name, request]) => ({
      request,
      status: responses[name] ?? SOUND[name],
    }));
    const before = await inventory();
    for (const { request, status } of operations.filter((each) => each.status !== 200)) {
      const response = await send(tenant, request);
      expect({ ...request, status: response.status }).toEqual({ ...request, status });
      const { error } = errorEnvelope.parse(response.body);
      if (status === 500) expect(error).toBe(OUR_FAULT);
    }
    expect(await inventory()).toEqual(before);
    for (const { request } of operations.filter((each) => each.status === 200)) {
      expect({ ...request, status: (await send(tenant, request)).status }).toEqual({
        ...request,
        status: 200,
      });
    }
    const versions = loggedVersions(tenant);
    expect(versions.length > 0).toBe(!READABLE.has(what));
    expect(versions).toEqual([...new Set(versions)]);
  });

  it("does not affect other tenants", async () => {
    for (const [name, request] of Object.entries(operationsOf(sound))) {
      expect({ name, status: (await send(sound, request)).status }).toEqual({ name, status: SOUND[name] });
    }
    expect(loggedVersions(sound)).toEqual([]);
  });
});

describe("a record that a user edits", () => {
  it("is logged once for each malformed version, and works again when it is valid", async () => {
    const tenant = await addTenant();
    const path = objectPath(CONFIG_MAPS, environment.records, `organization-${tenant.organizationId}`);
    const edit = (name: string) =>
      environment.admin.json({
        method: "PATCH",
        path,
        patchType: "application/merge-patch+json",
        body: { data: { name, privateEndpoints: name === "" ? BOMB : "[]" } },
      });
    const until = (status: number) =>
      waitFor(async () => (await send(tenant, { path: "/v1/organizations" })).status === status, {
        what: `the API to return ${status} for the organization`,
      });
    const malformed = async () => {
      const { text } = await clientOfText(api.opsUrl)("/metrics");
      return Number(/^pipe_scaling_malformed_records\{resource="configmaps",.*\} (\d+)$/m.exec(text)?.[1]);
    };
    await until(200);
    const before = await malformed();
    for (const [name, status] of [
      ["", 500],
      ["Acme", 200],
      ["", 500],
      ["Acme again", 200],
    ] as const) {
      await edit(name);
      await until(status);
      const expected = status === 500 ? before + 1 : before;
      await waitFor(async () => (await malformed()) === expected, { what: `${expected} malformed records` });
    }
    expect(loggedVersions(tenant)).toHaveLength(2);
  });
});

describe("a PipeScaling without a size in its status", () => {
  it("results in 503 for reads, but accepts a new size", async () => {
    const tenant = await addTenant();
    const { scaling = { path: "" }, scale = { path: "" } } = operationsOf(tenant);
    await waitFor(async () => (await send(tenant, scaling)).status === 200, {
      what: "the API to see the size",
    });
    await environment.admin.json({
      method: "PATCH",
      path: `${objectPath(PIPE_SCALINGS, environment.pipes, tenant.service)}/status`,
      patchType: "application/merge-patch+json",
      body: { status: { observedGeneration: 1, effective: null } },
    });
    const response = await waitFor(
      async () => {
        const seen = await send(tenant, scaling);
        return seen.status === 503 && seen;
      },
      { what: "the API to see the status" },
    );
    errorEnvelope.parse(response.body);
    expect((await send(tenant, scale)).status).toBe(200);
  });
});
