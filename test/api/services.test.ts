import { randomUUID } from "node:crypto";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { beforeAll, describe, expect, it } from "vitest";
import { successEnvelope } from "../../src/api/resources/envelopes.ts";
import { listServices } from "../../src/api/resources/services/routes.ts";
import { serviceRecord } from "../support/fixtures/records.ts";
import { setUpApi, setUpEnvironment } from "./fixtures.ts";

const environment = setUpEnvironment("services");
let organizationId: string;
let authorization: string;

beforeAll(async () => {
  organizationId = await environment.addOrganization();
  ({ authorization } = await environment.addKey({ organizationId }));
});
const api = setUpApi(environment);

async function addService(name: string, organization = organizationId): Promise<string> {
  const id = randomUUID();
  await environment.addRecord(
    serviceRecord({ id, name, organizationId: organization, namespace: environment.pipes }),
  );
  return id;
}

async function list() {
  const response = await api.send({ path: `/v1/organizations/${organizationId}/services`, authorization });
  expect(response.status).toBe(200);
  return successEnvelope(listServices.result).parse(response.body).result;
}

describe("GET services", () => {
  it("lists the ID and name of every service of the organization, sorted by name and then by ID", async () => {
    expect(await list()).toEqual([]);
    const ids = await Promise.all(["orders", "Billing", "orders", "ünits"].map((name) => addService(name)));
    const [orders = "", billing = "", alsoOrders = "", units = ""] = ids;
    await addService("another's", await environment.addOrganization());
    await waitFor(async () => (await list()).length === ids.length, { what: "the API to see the services" });
    const [first = "", second = ""] = [orders, alsoOrders].sort();
    expect(await list()).toEqual([
      { id: billing, name: "Billing" },
      { id: first, name: "orders" },
      { id: second, name: "orders" },
      { id: units, name: "ünits" },
    ]);
  });

  it("omits a service with a malformed record, and lists it when the record is repaired", async () => {
    const before = (await list()).length;
    const record = serviceRecord({ organizationId, namespace: environment.pipes, name: "malformed" });
    const malformed = { ...record, data: { ...record.data, namespace: "Not A Namespace" } };
    await environment.addRecord(malformed);
    const known = await addService("known");
    await waitFor(async () => (await list()).some(({ id }) => id === known), {
      what: "the API to see both services",
    });
    expect(await list()).toHaveLength(before + 1);
    await environment.replaceRecord(record);
    await waitFor(async () => (await list()).length === before + 2, {
      what: "the API to see the repaired record",
    });
  });
});
