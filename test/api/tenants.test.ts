import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
import type { Answer, Ask } from "./client.ts";
import { createWorld, PIPE_SCALINGS, type RunningApi, type World } from "./world.ts";

/*
 * Every operation, with every kind of key, on every kind of path. The two tables are the specification: what
 * a key is told about its own, and which paths lead anywhere else.
 */

type Status = 200 | 401 | 403 | 404;

interface KeyCase {
  readonly key: Omit<KeyFields, "organizationId">;
  /** What it is told: its organizations, by a GET of its own things, by a change of its own things. */
  readonly lists: Status;
  readonly reads: Status;
  readonly writes: Status;
  /** Whether the organization that the key belongs to has a record. */
  readonly homeless?: true;
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
    homeless: true,
    lists: 200,
    reads: 404,
    writes: 404,
  },
};

/** Whose the ids in a path are. */
const WHOSE = ["own", "another's", "absent"] as const;
type Whose = (typeof WHOSE)[number];

interface Ids {
  readonly organization: string;
  readonly service: string;
  readonly member: string;
}

/** A write, by the id of its operation. */
interface Write {
  readonly body?: string;
  /** The one object that it changes, as `inventory` names it. */
  readonly changes: (own: Ids) => string;
}

const WRITES_BY_ID: Readonly<Record<string, Write>> = {
  updateBackupConfiguration: {
    body: '{"backupPeriodInHours":12}',
    changes: ({ service }) => `configmaps/backup-${service}`,
  },
  updatePipeScaling: {
    body: '{"replicaCpuMillicores":4000}',
    changes: ({ service }) => `pipescalings/${service}`,
  },
  removeMember: { changes: ({ organization: id }) => `configmaps/members-${id}` },
};

interface Operation extends Partial<Write> {
  readonly method: "GET" | "PATCH" | "DELETE";
  /** The path with the organization that it names, and with what is inside of it. */
  readonly path: (organization: string, inside: Ids) => string;
  /** True if the path names something inside of the organization. */
  readonly deep: boolean;
}

/** Every operation on an organization, so that a new one cannot be forgotten here. */
const OPERATIONS_ON_TENANTS: readonly Operation[] = OPERATIONS.filter(({ path }) =>
  path.includes("{organizationId}"),
).map(({ id, method, path }) => {
  const write = WRITES_BY_ID[id];
  if (method !== "GET" && !write) throw new Error(`the write ${id} has no row in WRITES_BY_ID`);
  return {
    method,
    path: (organizationId, { service, member }) =>
      path
        .replace("{organizationId}", organizationId)
        .replace("{serviceId}", service)
        .replace("{userId}", member),
    deep: path.includes("{serviceId}") || path.includes("{userId}"),
    ...write,
  };
});

const READS = OPERATIONS_ON_TENANTS.filter(({ method }) => method === "GET");
const WRITES = OPERATIONS_ON_TENANTS.filter(({ method }) => method !== "GET");

let world: World;
let api: RunningApi;
let anothers: Ids;
/** Whatever the other tenant's records say. */
let canaries: readonly string[];
const tenants = new Map<string, { own: Ids; key: KeyRecord }>();

beforeAll(async () => {
  world = await createWorld("tenants");
  await addOther();
  const organizationId = await world.addOrganization();
  const homeless = randomUUID();
  const members = new Map<string, string[]>([
    [organizationId, ["ada"]],
    [homeless, ["ada"]],
  ]);
  // A service and a member for each key, so that each change is seen to be one.
  for (const [name, { key, homeless: without }] of Object.entries(KEYS)) {
    const organization = without ? homeless : organizationId;
    const own = { organization, service: await world.addService(organization), member: randomUUID() };
    members.get(organization)?.push(own.member);
    await world.addScaling(own.service, {}, 2);
    tenants.set(name, { own, key: await world.addKey({ ...key, organizationId: organization }) });
  }
  for (const [id, users] of members) await world.addRecord(membersConfigMap(id, users.map(memberOf)));
  // With everything there before, it has seen everything once it is ready.
  api = await world.startReadyApi();
});

afterAll(async () => {
  await api?.stop();
  await world?.remove();
});

function memberOf(userId: string): Member {
  return {
    userId,
    name: "Ada",
    email: "ada@example.com",
    role: userId === "ada" ? "admin" : "developer",
    joinedAt: new Date("2026-02-01T00:00:00Z"),
  };
}

/** The other tenant: as much of everything as can be, each with a text that nobody else has. */
async function addOther(): Promise<void> {
  const text = (what: string) => `canary-${what}`;
  const id = await world.addOrganization(
    { name: text("organization") },
    {
      byocConfig: `- {accountName: ${text("account")}, id: ${text("account-id")}}`,
      privateEndpoints: `- {description: ${text("endpoint")}, id: ${text("endpoint-id")}}`,
    },
  );
  const service = serviceRecord({
    organizationId: id,
    namespace: world.pipes,
    name: text("service"),
  });
  await world.addRecord(service);
  const serviceId = service.metadata.name.slice("service-".length);
  await world.addScaling(serviceId, { replicaCpuMillicores: 9000, replicaMemoryGb: 36 }, 9);
  await world.addRecord(
    backupConfigMap(serviceId, id, { periodInHours: 48, retentionPeriodInHours: 1080, startTime: "23:00" }),
  );
  const member = { ...memberOf(text("user")), name: text("name"), email: `${text("mail")}@example.com` };
  await world.addRecord(membersConfigMap(id, [memberOf("ada"), member]));
  const key = await world.addKey({
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
  readonly operation: Operation;
  readonly organization: Whose;
  readonly inside: Whose;
}

/** Every way in which a path can be one's own, another's, absent, or a mixture of them. */
function cellsOf(operation: Operation): Cell[] {
  return WHOSE.flatMap((of) =>
    operation.deep
      ? WHOSE.map((inside) => ({ operation, organization: of, inside }))
      : [{ operation, organization: of, inside: of }],
  );
}

function isOwn({ organization: of, inside }: Cell): boolean {
  return of === "own" && inside === "own";
}

/** The answer to a cell, which says nothing of the other tenant. */
function ask(name: string, cell: Cell, sent: Pick<Ask, "headers" | "body"> = {}): Promise<Answer> {
  const { own, key } = tenantOf(name);
  const { method, path, body } = cell.operation;
  const ids = { own, "another's": anothers, absent };
  return tell({
    method,
    path: path(ids[cell.organization].organization, ids[cell.inside]),
    authorization: key.authorization,
    ...(body === undefined ? {} : { headers: { "Content-Type": "application/json" }, body }),
    ...sent,
  });
}

async function tell(request: Ask): Promise<Answer> {
  const answer = await api.ask(request);
  const said = `${JSON.stringify(answer.headers)} ${answer.text}`;
  for (const canary of canaries) expect(said).not.toContain(canary);
  return answer;
}

function tenantOf(name: string): { own: Ids; key: KeyRecord } {
  const tenant = tenants.get(name);
  if (!tenant) throw new Error(`there is no ${name}`);
  return tenant;
}

/** An answer without what differs from one request to the next. */
function comparable({ status, headers, text }: Answer): object {
  const { date: _date, "x-request-id": _id, ...rest } = headers;
  const constant = Object.entries(rest).filter(([header]) => !header.includes("ratelimit"));
  return { status, text, headers: constant };
}

function expectRefusal(answer: Answer, status: Status): void {
  expect(answer.status).toBe(status);
  expect(errorEnvelope.parse(answer.body).status).toBe(status);
}

/** The version of each object that there is. When a key was last used is written at another time. */
async function inventory(): Promise<ReadonlyMap<string, string>> {
  const labelSelector = `${RESOURCE_LABEL},${RESOURCE_LABEL}!=key-usage`;
  const kinds: [Resource, string, object][] = [
    [CONFIG_MAPS, world.records, { labelSelector }],
    [SECRETS, world.records, { labelSelector }],
    [PIPE_SCALINGS, world.pipes, {}],
  ];
  const lists = kinds.map(async ([resource, namespace, query]) => {
    const path = collectionPath(resource, namespace);
    const { items } = await world.admin.json<{ items: KubeObject[] }>({ path, query: { ...query } });
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

describe.each(Object.entries(KEYS))("a key: %s", (name, { lists, reads, writes, homeless }) => {
  const operations = [
    ...READS.map((operation) => ({ operation, status: reads })),
    ...WRITES.map((operation) => ({ operation, status: writes })),
  ];

  it(`lists just its own organization: ${lists}`, async () => {
    const { own, key } = tenantOf(name);
    const answer = await tell({ path: "/v1/organizations", authorization: key.authorization });
    if (lists !== 200) return expectRefusal(answer, lists);
    const { result } = successEnvelope(z.array(organization)).parse(answer.body);
    expect(result.map(({ id }) => id)).toEqual(homeless ? [] : [own.organization]);
  });

  it("is told of another's just what it is told of what is absent, and changes nothing", async () => {
    const changed = await changedBy(async () => {
      for (const { operation, status } of operations) {
        const alike = new Map<string, object>();
        for (const cell of cellsOf(operation).filter((each) => !isOwn(each))) {
          const answer = await ask(name, cell);
          expectRefusal(answer, status === 200 ? 404 : status);
          // Where the path is looked at, which part of it leads nowhere may show; where it is not, nothing may.
          const looked = answer.status === 404 ? `${cell.organization} ${cell.inside}` : "";
          const group = looked.replaceAll("another's", "absent");
          expect(comparable(answer)).toEqual(alike.get(group) ?? comparable(answer));
          alike.set(group, comparable(answer));
          if (operation.body === undefined) continue;
          // A path that leads nowhere is told before the body is looked at.
          const nonsense = await ask(name, cell, { headers: {}, body: "canary" });
          expect(comparable(nonsense)).toEqual(comparable(answer));
        }
      }
    });
    expect(changed).toEqual([]);
  });

  it(`reads its own: ${reads}, and changes nothing`, async () => {
    const changed = await changedBy(async () => {
      for (const operation of READS) {
        const answer = await ask(name, { operation, organization: "own", inside: "own" });
        if (reads === 200) expect(answer.status).toBe(200);
        else expectRefusal(answer, reads);
      }
    });
    expect(changed).toEqual([]);
  });

  it(`changes its own: ${writes}, and nothing else`, async () => {
    for (const operation of WRITES) {
      const changed = await changedBy(async () => {
        const answer = await ask(name, { operation, organization: "own", inside: "own" });
        if (writes === 200) expect(answer.status).toBe(200);
        else expectRefusal(answer, writes);
      });
      expect(changed).toEqual(writes === 200 ? [operation.changes?.(tenantOf(name).own)] : []);
    }
  });

  it("is told of an id that is none only if it may do what it asks", async () => {
    const { key } = tenantOf(name);
    const none = { organization: "none", service: "none", member: "%zz" };
    for (const { operation, status } of operations) {
      const path = operation.path(none.organization, none);
      const answer = await tell({ method: operation.method, path, authorization: key.authorization });
      const admitted = status === 200 || status === 404;
      expect(answer.status).toBe(admitted ? 400 : status);
      errorEnvelope.parse(answer.body);
    }
  });
});
