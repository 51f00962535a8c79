import { inspect, isDeepStrictEqual } from "node:util";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONFIG_MAPS, objectPath, type Resource, SECRETS } from "../../src/kube/paths.ts";
import { recordLabels } from "../../src/records/labels.ts";
import type { KeyRecord } from "../support/fixtures/records.ts";
import type { Answer, Ask } from "./client.ts";
import { addMembers } from "./members-world.ts";
import { type SpawnedApi, spawnApi } from "./spawned-api.ts";
import { createWorld, PIPE_SCALINGS, type World } from "./world.ts";

/*
 * Two processes of the API share nothing but the cluster. What changes, by one of them or by a person, both
 * soon respond alike: within a second; machines on which this is tested may be slower.
 */

let world: World;
let one: SpawnedApi;
let two: SpawnedApi;

beforeAll(async () => {
  world = await createWorld("processes");
  [one, two] = await Promise.all([spawnApi(world), spawnApi(world)]);
});

afterAll(async () => {
  await Promise.all([one?.stop(), two?.stop()]);
  await world?.remove();
});

/** An organization with one service, whose pipes have 2 cores, and a key of it. */
class Tenant {
  readonly organizationId: string;
  readonly service: string;
  readonly key: KeyRecord;

  constructor(organizationId: string, service: string, key: KeyRecord) {
    this.organizationId = organizationId;
    this.service = service;
    this.key = key;
  }

  organizations(): Ask {
    return { path: "/v1/organizations", authorization: this.key.authorization };
  }

  keys(): Ask {
    return this.#at("/keys");
  }

  removal(userId: string): Ask {
    return { ...this.#at(`/members/${userId}`), method: "DELETE" };
  }

  scaling(change?: object, service = this.service): Ask {
    return this.#at(`/services/${service}/pipesCdcScaling`, change);
  }

  backup(change?: object): Ask {
    return this.#at(`/services/${this.service}/backupConfiguration`, change);
  }

  #at(path: string, change?: object): Ask {
    const ask = {
      path: `/v1/organizations/${this.organizationId}${path}`,
      authorization: this.key.authorization,
    };
    if (!change) return ask;
    const headers = { "Content-Type": "application/json" };
    return { ...ask, method: "PATCH", headers, body: JSON.stringify(change) };
  }
}

async function addTenant(): Promise<Tenant> {
  const organizationId = await world.addOrganization();
  const service = await world.addService(organizationId);
  await world.addScaling(service, {}, 2);
  const tenant = new Tenant(organizationId, service, await world.addKey({ organizationId }));
  await both(tenant.scaling(), 200, "2000");
  return tenant;
}

/** Both processes come to answer with this status and text, and alike. */
async function both(ask: Ask, status: number, text = ""): Promise<void> {
  await waitFor(
    async () => {
      const answers = await Promise.all([one.ask(ask), two.ask(ask)]);
      const expected = answers.every((answer) => answer.status === status && answer.text.includes(text));
      const [first, second] = answers.map(told);
      return (expected && isDeepStrictEqual(first, second)) || Promise.reject(new Error(inspect(answers)));
    },
    { what: `both to answer ${ask.method ?? "GET"} ${ask.path} with ${status} ${text}`, intervalMs: 5 },
  );
}

/** What a client is told, apart from the id of its request. */
function told({ status, body }: Answer): unknown {
  const { requestId: _id, ...rest } = Object(body);
  return { status, ...rest };
}

/** Changes an object as a person with kubectl would. */
function edit(resource: Resource, name: string, body: object, namespace = world.records): Promise<unknown> {
  return world.admin.json({
    method: "PATCH",
    path: objectPath(resource, namespace, name),
    patchType: "application/merge-patch+json",
    body,
  });
}

function remove(resource: Resource, name: string, namespace = world.records): Promise<unknown> {
  return world.admin.json({ method: "DELETE", path: objectPath(resource, namespace, name) });
}

const EIGHT_CORES = { replicaCpuMillicores: 8000, replicaMemoryGb: 32 };

describe("what one process has changed, both tell", () => {
  it("a size, once all pipes have it", async () => {
    const tenant = await addTenant();
    expect((await one.ask(tenant.scaling(EIGHT_CORES))).status).toBe(200);
    await world.report(tenant.service, 8);
    await both(tenant.scaling(), 200, "8000");
  });

  it("a backup configuration, and the change that the other makes of it", async () => {
    const tenant = await addTenant();
    expect((await one.ask(tenant.backup({ backupPeriodInHours: 12 }))).status).toBe(200);
    await both(tenant.backup(), 200, '"backupPeriodInHours":12');
    const further = await two.ask(tenant.backup({ backupRetentionPeriodInHours: 48 }));
    expect(further.body).toMatchObject({
      result: { backupPeriodInHours: 12, backupRetentionPeriodInHours: 48 },
    });
    await both(tenant.backup(), 200, '"backupRetentionPeriodInHours":48');
  });

  it("a member that is gone", async () => {
    const tenant = await addTenant();
    await addMembers(world, tenant.organizationId, { ada: "admin", bob: "developer" });
    expect((await one.ask(tenant.removal("bob"))).status).toBe(200);
    expect((await two.ask(tenant.removal("bob"))).status).toBe(404);
    expect((await one.ask(tenant.removal("bob"))).status).toBe(404);
  });
});

describe("what a person has changed, both tell", () => {
  it("a key that is disabled, enabled, and deleted", async () => {
    const tenant = await addTenant();
    const { name } = tenant.key.record.metadata;
    await edit(SECRETS, name, { stringData: { state: "disabled" } });
    await both(tenant.organizations(), 401);
    await edit(SECRETS, name, { stringData: { state: "enabled" } });
    await both(tenant.organizations(), 200);
    await remove(SECRETS, name);
    await both(tenant.organizations(), 401);
  });

  it("the roles and addresses of a key", async () => {
    const tenant = await addTenant();
    const { name } = tenant.key.record.metadata;
    await edit(SECRETS, name, { stringData: { roles: "[developer]" } });
    await both(tenant.scaling(EIGHT_CORES), 403, "roles");
    await both(tenant.scaling(), 200);
    await edit(SECRETS, name, { stringData: { ipAccessList: "- source: 192.0.2.1" } });
    await both(tenant.scaling(), 403, "address");
  });

  it("another key, and when it was used", async () => {
    const tenant = await addTenant();
    const { organizationId } = tenant;
    const { id } = await world.addKey({ organizationId });
    await both(tenant.keys(), 200, id);
    const name = `key-usage-${organizationId}`;
    // The processes write it too: the record may be there.
    const labels = recordLabels("key-usage", organizationId);
    await apply(world.cluster, [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name, namespace: world.records, labels },
        data: { [id]: "2026-04-05T06:07:00Z" },
      },
    ]);
    await both(tenant.keys(), 200, "2026-04-05T06:07:00.000Z");
  });

  it("the name of an organization", async () => {
    const tenant = await addTenant();
    await edit(CONFIG_MAPS, `organization-${tenant.organizationId}`, { data: { name: "Renamed" } });
    await both(tenant.organizations(), 200, "Renamed");
  });

  it("a service that is made, moved to another namespace, and deleted", async () => {
    const tenant = await addTenant();
    const service = await world.addService(tenant.organizationId);
    await both(tenant.scaling(undefined, service), 400, "No database pipe");
    await world.addScaling(service, {}, 3);
    await both(tenant.scaling(undefined, service), 200, "3000");
    await edit(CONFIG_MAPS, `service-${service}`, { data: { namespace: world.records } });
    await both(tenant.scaling(undefined, service), 400, "No database pipe");
    await remove(CONFIG_MAPS, `service-${service}`);
    await both(tenant.scaling(undefined, service), 404);
  });

  it("a scaling that is suspended, resumed, and deleted", async () => {
    const tenant = await addTenant();
    await edit(PIPE_SCALINGS, tenant.service, { spec: { suspend: true } }, world.pipes);
    await both(tenant.scaling(EIGHT_CORES), 409);
    await edit(PIPE_SCALINGS, tenant.service, { spec: { suspend: null } }, world.pipes);
    await both(tenant.scaling(EIGHT_CORES), 200, "8000");
    await remove(PIPE_SCALINGS, tenant.service, world.pipes);
    await both(tenant.scaling(), 400, "No database pipe");
  });
});
