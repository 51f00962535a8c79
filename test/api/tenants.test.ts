import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { errorEnvelope, successEnvelope } from "../../src/api/resources/envelopes.ts";
import { OPERATIONS } from "../../src/api/resources/operations.ts";
import { organization } from "../../src/api/resources/organizations/schema.ts";
import type { KubeObject } from "../../src/kube/objects.ts";
import { CONFIG_MAPS, collectionPath, type Resource, SECRETS } from "../../src/kube/paths.ts";
import { backupConfigMap } from "../../src/records/backup.ts";
import { RESOURCE_LABEL } from "../../src/records/labels.ts";
import { type Member, membersConfigMap } from "../../src/records/members.ts";
import { type KeyFields, type KeyRecord, serviceRecord } from "../support/fixtures/records.ts";
import type { ApiRequest, ApiResponse } from "./client.ts";
import { PIPE_SCALINGS } from "./environment.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";
import { aBoost, type Ids, type TenantOperation, tenantOperations } from "./tenancy.ts";

/*
 * Combines every operation with every kind of key and every kind of path. The tables are the specification: KEYS has
 * the statuses that each key gets for its own organization, and WHOSE the owners of the objects that a path can name.
 */

type Status = 200 | 401 | 403 | 404;

interface KeyCase {
  readonly key: Omit<KeyFields, "organizationId">;
  /** Statuses for listing organizations, and for reading and writing its own objects. */
  readonly lists: Status;
  readonly reads: Status;
  readonly writes: Status;
  /** The organization that the key belongs to has no record. */
  readonly hasNoOrganization?: true;
}

const sources = (source: string) => ({ ipAccessList: [{ description: "", source }] });

const KEYS: Readonly<Record<string, KeyCase>> = {
  admin: { key: {}, lists: 200, reads: 200, writes: 200 },
  developer: { key: { roles: ["developer"] }, lists: 200, reads: 200, writes: 403 },
  "developer and admin": { key: { roles: ["developer", "admin"] }, lists: 200, reads: 200, writes: 200 },
  "developer and another role": {
    key: { roles: ["billing", "developer"] },
    lists: 200,
    reads: 200,
    writes: 403,
  },
  "another role": { key: { roles: ["billing"] }, lists: 403, reads: 403, writes: 403 },
  "no role": { key: { roles: [] }, lists: 403, reads: 403, writes: 403 },
  "disabled admin": { key: { state: "disabled" }, lists: 401, reads: 401, writes: 401 },
  "expired admin": { key: { expireAt: new Date(0) }, lists: 401, reads: 401, writes: 401 },
  "admin for another address": { key: sources("192.0.2.1"), lists: 403, reads: 403, writes: 403 },
  "admin for another network": { key: sources("10.0.0.0/8"), lists: 403, reads: 403, writes: 403 },
  "expired admin for another address": {
    key: { ...sources("192.0.2.1"), expireAt: new Date(0) },
    lists: 401,
    reads: 401,
    writes: 401,
  },
  "developer for another address": {
    key: { ...sources("192.0.2.1"), roles: ["developer"] },
    lists: 403,
    reads: 403,
    writes: 403,
  },
  "admin of an organization without a record": {
    key: {},
    hasNoOrganization: true,
    lists: 200,
    reads: 404,
    writes: 404,
  },
};

/** Owners of the IDs in a path. */
const WHOSE = ["own", "another's", "absent"] as const;
type Whose = (typeof WHOSE)[number];

const OPERATIONS_ON_TENANTS = tenantOperations(OPERATIONS);
const READS = OPERATIONS_ON_TENANTS.filter(({ method }) => method === "GET");
const WRITES = OPERATIONS_ON_TENANTS.filter(({ method }) => method !== "GET");

const environment = setUpEnvironment("tenants");
let anothers: Ids;
/** Texts in the other tenant's records, which no response may contain. */
let canaries: readonly string[];
const tenants = new Map<string, { own: Ids; key: KeyRecord }>();

beforeAll(async () => {
  await addOther();
  const organizationId = await environment.addOrganization();
  const withoutRecord = randomUUID();
  const members = new Map<string, string[]>([
    [organizationId, ["ada"]],
    [withoutRecord, ["ada"]],
  ]);
  // Each key gets its own service and member, so that each write has an effect.
  for (const [name, { key, hasNoOrganization }] of Object.entries(KEYS)) {
    const organization = hasNoOrganization ? withoutRecord : organizationId;
    const own = { organization, service: await environment.addService(organization), member: randomUUID() };
    members.get(organization)?.push(own.member);
    await environment.addScaling(own.service, { boost: aBoost() }, 2);
    tenants.set(name, { own, key: await environment.addKey({ ...key, organizationId: organization }) });
  }
  for (const [id, users] of members) await environment.addRecord(membersConfigMap(id, users.map(memberOf)));
});
const api = setUpApi(environment);

function memberOf(userId: string): Member {
  return {
    userId,
    name: "Ada",
    email: "ada@example.com",
    role: userId === "ada" ? "admin" : "developer",
    joinedAt: new Date("2026-02-01T00:00:00Z"),
  };
}

/** Creates the other tenant: records of every kind, each with a unique text. */
async function addOther(): Promise<void> {
  const text = (what: string) => `canary-${what}`;
  const id = await environment.addOrganization(
    { name: text("organization") },
    {
      byocConfig: `- {accountName: ${text("account")}, id: ${text("account-id")}}`,
      privateEndpoints: `- {description: ${text("endpoint")}, id: ${text("endpoint-id")}}`,
    },
  );
  const service = serviceRecord({
    organizationId: id,
    namespace: environment.pipes,
    name: text("service"),
  });
  await environment.addRecord(service);
  const serviceId = service.metadata.name.slice("service-".length);
  await environment.addScaling(serviceId, { replicaCpuMillicores: 9000, replicaMemoryGb: 36 }, 9);
  await environment.addRecord(
    backupConfigMap(serviceId, id, { periodInHours: 48, retentionPeriodInHours: 1080, startTime: "23:00" }),
  );
  const member = { ...memberOf(text("user")), name: text("name"), email: `${text("mail")}@example.com` };
  await environment.addRecord(membersConfigMap(id, [memberOf("ada"), member]));
  const key = await environment.addKey({
    organizationId: id,
    name: text("key"),
    ipAccessList: [{ description: text("office"), source: "127.0.0.1" }],
  });
  anothers = { organization: id, service: serviceId, member: member.userId };
  canaries = [
    "canary-",
    id,
    serviceId,
    key.id,
    key.keyId,
    key.keySecret,
    '"backupRetentionPeriodInHours":1080',
    '"replicaCpuMillicores":9000',
  ];
}

const absent: Ids = { organization: randomUUID(), service: randomUUID(), member: randomUUID() };

interface Cell {
  readonly operation: TenantOperation;
  readonly organization: Whose;
  readonly inside: Whose;
}

/** Combines the owners of the organization and of the objects in it. */
function cellsOf(operation: TenantOperation): Cell[] {
  return WHOSE.flatMap((of) =>
    operation.isDeep
      ? WHOSE.map((inside) => ({ operation, organization: of, inside }))
      : [{ operation, organization: of, inside: of }],
  );
}

function isOwn({ organization: of, inside }: Cell): boolean {
  return of === "own" && inside === "own";
}

/** Sends the request of a cell and checks that the response reveals nothing about the other tenant. */
function sendCell(
  name: string,
  cell: Cell,
  sent: Pick<ApiRequest, "headers" | "body"> = {},
): Promise<ApiResponse> {
  const { own, key } = tenantOf(name);
  const { method, path, body } = cell.operation;
  const ids = { own, "another's": anothers, absent };
  return send({
    method,
    path: path(ids[cell.organization].organization, ids[cell.inside]),
    authorization: key.authorization,
    ...(body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body }),
    ...sent,
  });
}

async function send(request: ApiRequest): Promise<ApiResponse> {
  const response = await api.send(request);
  const revealed = `${JSON.stringify(response.headers)} ${response.text}`;
  for (const canary of canaries) expect(revealed).not.toContain(canary);
  return response;
}

function tenantOf(name: string): { own: Ids; key: KeyRecord } {
  const tenant = tenants.get(name);
  if (!tenant) throw new Error(`no key is named ${name}`);
  return tenant;
}

/** Removes the parts of a response that differ between requests. */
function comparable({ status, headers, text }: ApiResponse): object {
  const { date: _date, "x-request-id": _id, ...rest } = headers;
  const constant = Object.entries(rest).filter(([header]) => !header.includes("ratelimit"));
  return { status, text, headers: constant };
}

function expectRefusal(response: ApiResponse, status: Status): void {
  expect(response.status).toBe(status);
  expect(errorEnvelope.parse(response.body).status).toBe(status);
}

/** Returns the version of each object, except key-usage records, which the API writes at any time. */
async function inventory(): Promise<ReadonlyMap<string, string>> {
  const labelSelector = `${RESOURCE_LABEL},${RESOURCE_LABEL}!=key-usage`;
  const kinds: [Resource, string, object][] = [
    [CONFIG_MAPS, environment.records, { labelSelector }],
    [SECRETS, environment.records, { labelSelector }],
    [PIPE_SCALINGS, environment.pipes, {}],
  ];
  const lists = kinds.map(async ([resource, namespace, query]) => {
    const path = collectionPath(resource, namespace);
    const { items } = await environment.admin.json<{ items: KubeObject[] }>({ path, query: { ...query } });
    return items.map(({ metadata }): [string, string] => [
      `${resource.plural}/${metadata.name}`,
      metadata.resourceVersion,
    ]);
  });
  return new Map((await Promise.all(lists)).flat());
}

async function changedBy(act: () => Promise<unknown>): Promise<string[]> {
  const before = await inventory();
  await act();
  const after = await inventory();
  return [...new Set([...before.keys(), ...after.keys()])].filter(
    (name) => before.get(name) !== after.get(name),
  );
}

describe.each(Object.entries(KEYS))("a key: %s", (name, { lists, reads, writes, hasNoOrganization }) => {
  const operations = [
    ...READS.map((operation) => ({ operation, status: reads })),
    ...WRITES.map((operation) => ({ operation, status: writes })),
  ];

  it(`lists only its own organization: ${lists}`, async () => {
    const { own, key } = tenantOf(name);
    const response = await send({ path: "/v1/organizations", authorization: key.authorization });
    if (lists !== 200) return expectRefusal(response, lists);
    const { result } = successEnvelope(z.array(organization)).parse(response.body);
    expect(result.map(({ id }) => id)).toEqual(hasNoOrganization ? [] : [own.organization]);
  });

  it("gets the same response for another tenant's objects as for absent ones, and changes nothing", async () => {
    const changed = await changedBy(async () => {
      for (const { operation, status } of operations) {
        const alike = new Map<string, object>();
        for (const cell of cellsOf(operation).filter((each) => !isOwn(each))) {
          const response = await sendCell(name, cell);
          expectRefusal(response, status === 200 ? 404 : status);
          // A 404 may reveal which part of the path is absent; other statuses may reveal nothing about the path.
          const lookup = response.status === 404 ? `${cell.organization} ${cell.inside}` : "";
          const group = lookup.replaceAll("another's", "absent");
          expect(comparable(response)).toEqual(alike.get(group) ?? comparable(response));
          alike.set(group, comparable(response));
          if (operation.body === undefined) continue;
          // The path is checked before the body.
          const nonsense = await sendCell(name, cell, { headers: {}, body: "canary" });
          expect(comparable(nonsense)).toEqual(comparable(response));
        }
      }
    });
    expect(changed).toEqual([]);
  });

  it(`gets ${reads} when it reads its own objects, and changes nothing`, async () => {
    const changed = await changedBy(async () => {
      for (const operation of READS) {
        const response = await sendCell(name, { operation, organization: "own", inside: "own" });
        if (reads === 200) expect(response.status).toBe(200);
        else expectRefusal(response, reads);
      }
    });
    expect(changed).toEqual([]);
  });

  it(`gets ${writes} when it writes its own objects, and changes nothing else`, async () => {
    for (const operation of WRITES) {
      const changed = await changedBy(async () => {
        const response = await sendCell(name, { operation, organization: "own", inside: "own" });
        if (writes === 200) expect(response.status).toBe(200);
        else expectRefusal(response, writes);
      });
      expect(changed).toEqual(writes === 200 ? [operation.changes?.(tenantOf(name).own)] : []);
    }
  });

  it("gets 400 for malformed IDs only if it is authorized for the operation", async () => {
    const { key } = tenantOf(name);
    const none = { organization: "none", service: "none", member: "%zz" };
    for (const { operation, status } of operations) {
      const path = operation.path(none.organization, none);
      const response = await send({ method: operation.method, path, authorization: key.authorization });
      const isAuthorized = status === 200 || status === 404;
      expect(response.status).toBe(isAuthorized ? 400 : status);
      errorEnvelope.parse(response.body);
    }
  });
});
