import { inspect, isDeepStrictEqual } from "node:util";
import { apply } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONFIG_MAPS, objectPath, type Resource, SECRETS } from "../../src/kube/paths.ts";
import { recordLabels } from "../../src/records/labels.ts";
import type { ApiRequest, ApiResponse } from "./client.ts";
import { PIPE_SCALINGS } from "./environment.ts";
import { setUpEnvironment } from "./fixtures.ts";
import { addMembers } from "./member-records.ts";
import { type SpawnedApi, spawnApi } from "./spawned-api.ts";

/*
 * Two API processes share only the cluster. After a change, made through one of them or with kubectl, both return the
 * same responses, usually within a second.
 */

const environment = setUpEnvironment("processes");
let one: SpawnedApi;
let two: SpawnedApi;

beforeAll(async () => {
  [one, two] = await Promise.all([spawnApi(environment), spawnApi(environment)]);
});

afterAll(() => Promise.all([one?.stop(), two?.stop()]));

/** Adds a tenant that both processes know. Returns it with the requests that its admin can send. */
async function addTenant() {
  const tenant = await environment.addTenant();
  const { organizationId, serviceId, admin } = tenant;
  const { authorization } = admin;
  function at(path: string, change?: object): ApiRequest {
    const send = { path: `/v1/organizations/${organizationId}${path}`, authorization };
    if (!change) return send;
    const headers = { "Content-Type": "application/json" };
    return { ...send, method: "PATCH", headers, body: JSON.stringify(change) };
  }
  const requests = {
    organizations: () => ({ path: "/v1/organizations", authorization }),
    keys: () => at("/keys"),
    removal: (userId: string) => ({ ...at(`/members/${userId}`), method: "DELETE" }),
    scaling: (change?: object, service = serviceId) => at(`/services/${service}/pipesCdcScaling`, change),
    backup: (change?: object) => at(`/services/${serviceId}/backupConfiguration`, change),
  };
  await both(requests.scaling(), 200, "2000");
  return { ...tenant, ...requests };
}

/** Waits until both processes return the same response with this status and text. */
async function both(send: ApiRequest, status: number, text = ""): Promise<void> {
  await waitFor(
    async () => {
      const responses = await Promise.all([one.send(send), two.send(send)]);
      const expected = responses.every(
        (response) => response.status === status && response.text.includes(text),
      );
      const [first, second] = responses.map(withoutRequestId);
      return (expected && isDeepStrictEqual(first, second)) || Promise.reject(new Error(inspect(responses)));
    },
    {
      what: `both processes to respond to ${send.method ?? "GET"} ${send.path} with ${status} ${text}`,
      intervalMs: 5,
    },
  );
}

/** Returns the response without the request ID. */
function withoutRequestId({ status, body }: ApiResponse): unknown {
  const { requestId: _id, ...rest } = Object(body);
  return { status, ...rest };
}

/** Changes an object like kubectl. */
function edit(
  resource: Resource,
  name: string,
  body: object,
  namespace = environment.records,
): Promise<unknown> {
  return environment.admin.json({
    method: "PATCH",
    path: objectPath(resource, namespace, name),
    patchType: "application/merge-patch+json",
    body,
  });
}

function remove(resource: Resource, name: string, namespace = environment.records): Promise<unknown> {
  return environment.admin.json({ method: "DELETE", path: objectPath(resource, namespace, name) });
}

const EIGHT_CORES = { replicaCpuMillicores: 8000, replicaMemoryGb: 32 };

describe("after a change made through one process, both processes", () => {
  it("return a new size when all pipes run it", async () => {
    const tenant = await addTenant();
    expect((await one.send(tenant.scaling(EIGHT_CORES))).status).toBe(200);
    await environment.report(tenant.serviceId, 8);
    await both(tenant.scaling(), 200, "8000");
  });

  it("return a changed backup configuration, and keep it when the other process changes another field", async () => {
    const tenant = await addTenant();
    expect((await one.send(tenant.backup({ backupPeriodInHours: 12 }))).status).toBe(200);
    await both(tenant.backup(), 200, '"backupPeriodInHours":12');
    const further = await two.send(tenant.backup({ backupRetentionPeriodInHours: 48 }));
    expect(further.body).toMatchObject({
      result: { backupPeriodInHours: 12, backupRetentionPeriodInHours: 48 },
    });
    await both(tenant.backup(), 200, '"backupRetentionPeriodInHours":48');
  });

  it("return 404 for a removed member", async () => {
    const tenant = await addTenant();
    await addMembers(environment, tenant.organizationId, { ada: "admin", bob: "developer" });
    expect((await one.send(tenant.removal("bob"))).status).toBe(200);
    expect((await two.send(tenant.removal("bob"))).status).toBe(404);
    expect((await one.send(tenant.removal("bob"))).status).toBe(404);
  });
});

describe("after a change made with kubectl, both processes", () => {
  it("reject a key that is disabled or deleted, and accept it when it is enabled again", async () => {
    const tenant = await addTenant();
    const { name } = tenant.admin.record.metadata;
    await edit(SECRETS, name, { stringData: { state: "disabled" } });
    await both(tenant.organizations(), 401);
    await edit(SECRETS, name, { stringData: { state: "enabled" } });
    await both(tenant.organizations(), 200);
    await remove(SECRETS, name);
    await both(tenant.organizations(), 401);
  });

  it("apply the new roles and addresses of a key", async () => {
    const tenant = await addTenant();
    const { name } = tenant.admin.record.metadata;
    await edit(SECRETS, name, { stringData: { roles: "[developer]" } });
    await both(tenant.scaling(EIGHT_CORES), 403, "roles");
    await both(tenant.scaling(), 200);
    await edit(SECRETS, name, { stringData: { ipAccessList: "- source: 192.0.2.1" } });
    await both(tenant.scaling(), 403, "address");
  });

  it("list a new key with its last use", async () => {
    const tenant = await addTenant();
    const { organizationId } = tenant;
    const { id } = await environment.addKey({ organizationId });
    await both(tenant.keys(), 200, id);
    const name = `key-usage-${organizationId}`;
    // The record may already exist, because the processes write it too.
    const labels = recordLabels("key-usage", organizationId);
    await apply(environment.cluster, [
      {
        apiVersion: "v1",
        kind: "ConfigMap",
        metadata: { name, namespace: environment.records, labels },
        data: { [id]: "2026-04-05T06:07:00Z" },
      },
    ]);
    await both(tenant.keys(), 200, "2026-04-05T06:07:00.000Z");
  });

  it("return the new name of an organization", async () => {
    const tenant = await addTenant();
    await edit(CONFIG_MAPS, `organization-${tenant.organizationId}`, { data: { name: "Renamed" } });
    await both(tenant.organizations(), 200, "Renamed");
  });

  it("reflect the creation of a service, its move to another namespace and its deletion", async () => {
    const tenant = await addTenant();
    const service = await environment.addService(tenant.organizationId);
    await both(tenant.scaling(undefined, service), 400, "No database pipe");
    await environment.addScaling(service, {}, 3);
    await both(tenant.scaling(undefined, service), 200, "3000");
    await edit(CONFIG_MAPS, `service-${service}`, { data: { namespace: environment.records } });
    await both(tenant.scaling(undefined, service), 400, "No database pipe");
    await remove(CONFIG_MAPS, `service-${service}`);
    await both(tenant.scaling(undefined, service), 404);
  });

  it("reflect the suspension, resumption and deletion of a PipeScaling", async () => {
    const tenant = await addTenant();
    await edit(PIPE_SCALINGS, tenant.serviceId, { spec: { suspend: true } }, environment.pipes);
    await both(tenant.scaling(EIGHT_CORES), 409);
    await edit(PIPE_SCALINGS, tenant.serviceId, { spec: { suspend: null } }, environment.pipes);
    await both(tenant.scaling(EIGHT_CORES), 200, "8000");
    await remove(PIPE_SCALINGS, tenant.serviceId, environment.pipes);
    await both(tenant.scaling(), 503, "being set up again");
  });
});
