import { randomUUID } from "node:crypto";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { listServices } from "../../src/api/resources/services/routes.ts";
import { serviceRecord } from "../support/fixtures/records.ts";
import { createWorld, type RunningApi, type World } from "./world.ts";

let world: World;
let api: RunningApi;
let organizationId: string;
let authorization: string;

beforeAll(async () => {
  world = await createWorld("services");
  api = await world.startReadyApi();
  organizationId = await world.addOrganization();
  ({ authorization } = await world.addKey({ organizationId }));
  await api.admits(authorization);
});

afterAll(async () => {
  await api?.stop();
  await world?.remove();
});

async function addService(name: string, organization = organizationId): Promise<string> {
  const id = randomUUID();
  await world.addRecord(serviceRecord({ id, name, organizationId: organization, namespace: world.pipes }));
  return id;
}

async function list() {
  const answer = await api.ask({ path: `/v1/organizations/${organizationId}/services`, authorization });
  expect(answer.status).toBe(200);
  return successEnvelope(listServices.result).parse(answer.body).result;
}

describe("GET services", () => {
  it("lists id and name of every service of the organization, by name and then by id", async () => {
    expect(await list()).toEqual([]);
    const ids = await Promise.all(["orders", "Billing", "orders", "ünits"].map((name) => addService(name)));
    const [orders = "", billing = "", alsoOrders = "", units = ""] = ids;
    await addService("another's", await world.addOrganization());
    await waitFor(async () => (await list()).length === ids.length, { what: "the services to be known" });
    const [first = "", second = ""] = [orders, alsoOrders].sort();
    expect(await list()).toEqual([
      { id: billing, name: "Billing" },
      { id: first, name: "orders" },
      { id: second, name: "orders" },
      { id: units, name: "ünits" },
    ]);
  });

  it("leaves out a service whose record is malformed, and lists it again once it is repaired", async () => {
    const before = (await list()).length;
    const record = serviceRecord({ organizationId, namespace: world.pipes, name: "malformed" });
    const malformed = { ...record, data: { ...record.data, namespace: "Not A Namespace" } };
    await world.addRecord(malformed);
    const known = await addService("known");
    await waitFor(async () => (await list()).some(({ id }) => id === known), { what: "both to be known" });
    expect(await list()).toHaveLength(before + 1);
    await world.replaceRecord(record);
    await waitFor(async () => (await list()).length === before + 2, {
      what: "the repaired record to be known",
    });
  });
});
