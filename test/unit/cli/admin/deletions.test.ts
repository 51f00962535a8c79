import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { DEFAULT_BACKUP_POLICY } from "../../../../src/domain/backup-policy.ts";
import { backupConfigMap } from "../../../../src/records/backup.ts";
import { ORGANIZATION_LABEL, RESOURCE_LABEL } from "../../../../src/records/labels.ts";
import { membersConfigMap } from "../../../../src/records/members.ts";
import { keyRecord, organizationRecord, serviceRecord } from "../../../support/fixtures/records.ts";
import { type FakeRecord, FakeRecords, keyUsageRecord, status } from "./fake-records.ts";

const ACME = randomUUID();
const NEW_OWNER = randomUUID();
const SERVICE = randomUUID();

const service = (organizationId: string) =>
  serviceRecord({ id: SERVICE, organizationId, namespace: "pipes", name: "orders" });
const backup = (organizationId: string, serviceId = SERVICE) =>
  backupConfigMap(serviceId, organizationId, DEFAULT_BACKUP_POLICY);
const members = (organizationId: string) =>
  membersConfigMap(organizationId, [
    { userId: "ada", name: "Ada", email: "ada@example.com", role: "admin", joinedAt: new Date(0) },
  ]);
/** @param labels in place of those of the record */
const labeled = (record: FakeRecord, labels: Readonly<Record<string, string>> = {}): FakeRecord => ({
  ...record,
  metadata: { ...record.metadata, labels },
});
/** Creates a record just before an object is deleted, like an API that still has that object in its cache. */
function recreate(cluster: FakeRecords, record: FakeRecord, deleted: string): void {
  cluster.intercept = ({ method, path }) => {
    if (method === "DELETE" && path.includes(`/${deleted}`)) cluster.put(record);
    return undefined;
  };
}

describe("the deletion of an organization", () => {
  /** The service was created in ACME. Its backup settings keep the label of that organization. */
  const withMovedService = () =>
    new FakeRecords(
      organizationRecord({ id: ACME }),
      organizationRecord({ id: NEW_OWNER }),
      service(NEW_OWNER),
      backup(ACME),
    );

  it("keeps the backup settings of a service that moved to another organization", async () => {
    const records = withMovedService();
    expect((await records.run(`admin organization delete ${ACME} --yes`)).code).toBe(0);
    expect(records.names).toEqual(
      [`backup-${SERVICE}`, `organization-${NEW_OWNER}`, `service-${SERVICE}`].sort(),
    );
  });

  it("includes the backup settings of a service that moved here", async () => {
    const records = withMovedService();
    const { code } = await records.run(`admin organization delete ${NEW_OWNER} --with-services --yes`);
    expect(code).toBe(0);
    expect(records.names).toEqual([`organization-${ACME}`]);
  });

  it("includes backup settings that were left by a service that does not exist", async () => {
    const records = new FakeRecords(organizationRecord({ id: ACME }), backup(ACME, randomUUID()));
    expect((await records.run(`admin organization delete ${ACME} --yes`)).code).toBe(0);
    expect(records.names).toEqual([]);
  });

  const key = keyRecord({ organizationId: ACME }).record;
  const withKeyInUse = () =>
    new FakeRecords(organizationRecord({ id: ACME }), service(ACME), backup(ACME), key, keyUsageRecord(ACME));
  const DELETE = `admin organization delete ${ACME} --with-services`;

  it("continues if the API recorded the use of a key while the question was open", async () => {
    const records = withKeyInUse();
    const { code, err } = await records.run(DELETE, () => records.put(keyUsageRecord(ACME)));
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringContaining(`Organization ${ACME} is deleted.\n`),
    });
    expect(records.names).toEqual([]);
  });

  it.each([
    ["the organization was renamed", organizationRecord({ id: ACME, name: "Important" })],
    ["a service was changed", serviceRecord({ id: SERVICE, organizationId: ACME, namespace: "others" })],
    ["a key was created", keyRecord({ organizationId: ACME }).record],
  ])("deletes nothing if %s while the question was open", async (_, change) => {
    const records = withKeyInUse();
    const { code, err, writes } = await records.run(DELETE, () => records.put(change));
    expect({ code, writes }).toEqual({ code: 1, writes: [] });
    expect(err).toContain(
      `A record of organization ${ACME} has changed since this command read it, so nothing was deleted. Check it, then run the command again.\n`,
    );
  });

  it.each([
    ["a conflict", status(409, "Conflict", "no"), /has changed since .*, so it was not deleted\. .* again\./],
    ["a missing permission", status(403, "Forbidden", "no"), /rejected the request: DELETE \S+: 403 no\./],
  ])("lists what is already deleted after %s", async (_, response, sentence) => {
    const records = withKeyInUse();
    records.intercept = ({ method, path }) =>
      method === "DELETE" && path.includes(`/service-${SERVICE}`) ? response : undefined;
    const { code, err } = await records.run(`${DELETE} --yes`);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringMatching(sentence) });
    expect(err).toContain(" Already deleted: 1 API key, 1 ConfigMap.\n");
    expect(records.names).toEqual([`key-usage-${ACME}`, `organization-${ACME}`, `service-${SERVICE}`].sort());
  });

  it.each([
    ["a 504", status(504, "Timeout", "request did not complete")],
    ["a response that cannot be read", { body: "" }],
  ])(
    "names the deletion in doubt after %s, and deletes what is left if it is repeated",
    async (_, response) => {
      const records = withKeyInUse();
      records.intercept = ({ method, path }) => {
        if (method !== "DELETE" || !path.includes(`/service-${SERVICE}`)) return undefined;
        records.delete(`service-${SERVICE}`);
        return response;
      };
      const { code, err } = await records.run(`${DELETE} --yes`);
      expect({ code, err }).toEqual({
        code: 1,
        err: expect.stringMatching(
          new RegExp(
            `^The ConfigMap service-${SERVICE} may have been deleted\\. Run the command again: .* \\(DELETE .*\\)\\. Already deleted: 1 API key, 1 ConfigMap\\.\n$`,
          ),
        ),
      });
      expect((await records.run(`${DELETE} --yes`)).code).toBe(0);
      expect(records.names).toEqual([]);
    },
  );

  describe.each([
    ["no labels", {}],
    ["only the label of records", { [RESOURCE_LABEL]: "members" }],
    ["only the label of the organization", { [ORGANIZATION_LABEL]: ACME }],
    ["an empty label of the organization", { [RESOURCE_LABEL]: "members", [ORGANIZATION_LABEL]: "" }],
    ["the ID in upper case as its label", { [ORGANIZATION_LABEL]: ACME.toUpperCase() }],
  ])("with members that have %s", (_, labels) => {
    it("counts and deletes them", async () => {
      const records = new FakeRecords(organizationRecord({ id: ACME }), labeled(members(ACME), labels));
      const { code, err } = await records.run(`admin organization delete ${ACME}`);
      expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining("with 0 API keys, 1 member?") });
      expect(records.names).toEqual([]);
    });
  });

  it("includes key usage without labels, at any version", async () => {
    const usage = labeled(keyUsageRecord(ACME));
    const records = new FakeRecords(organizationRecord({ id: ACME }), usage);
    const { code } = await records.run(`admin organization delete ${ACME}`, () => records.put(usage));
    expect(code).toBe(0);
    expect(records.names).toEqual([]);
  });

  it("includes backup settings without labels of its services, and of no others", async () => {
    const other = randomUUID();
    const otherService = serviceRecord({ id: other, organizationId: NEW_OWNER, namespace: "pipes" });
    const unknown = labeled(backup(ACME, randomUUID()));
    const kept = [organizationRecord({ id: NEW_OWNER }), otherService, labeled(backup(ACME, other)), unknown];
    const records = new FakeRecords(
      organizationRecord({ id: ACME }),
      service(ACME),
      labeled(backup(ACME)),
      ...kept,
    );
    expect((await records.run(`admin organization delete ${ACME} --with-services --yes`)).code).toBe(0);
    expect(records.names).toEqual(kept.map(({ metadata }) => metadata.name).sort());
  });

  it("deletes nothing if members without labels change while the question is open", async () => {
    const unlabeled = labeled(members(ACME));
    const records = new FakeRecords(organizationRecord({ id: ACME }), unlabeled);
    const { code, writes } = await records.run(`admin organization delete ${ACME}`, () =>
      records.put(unlabeled),
    );
    expect({ code, writes }).toEqual({ code: 1, writes: [] });
  });

  it("keeps records that the name or the label gives to another organization, and ConfigMaps that are no records", async () => {
    const labels = (kind: string, id: string) => ({ [RESOURCE_LABEL]: kind, [ORGANIZATION_LABEL]: id });
    const kept = [
      labeled(members(ACME), labels("members", NEW_OWNER)),
      labeled(keyUsageRecord(ACME), { [ORGANIZATION_LABEL]: NEW_OWNER }),
      labeled(organizationRecord({ id: NEW_OWNER }), labels("organization", ACME)),
      labeled(members(NEW_OWNER), labels("members", ACME)),
      labeled(keyUsageRecord(NEW_OWNER)),
      { kind: "ConfigMap", metadata: { name: "notes", labels: { [ORGANIZATION_LABEL]: ACME } } },
      { kind: "ConfigMap", metadata: { name: `members-${ACME}-copy` } },
    ];
    const records = new FakeRecords(organizationRecord({ id: ACME }), ...kept);
    const { code, err } = await records.run(`admin organization delete ${ACME}`);
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining("with 0 API keys, 0 members?") });
    expect(records.names).toEqual(kept.map(({ metadata }) => metadata.name).sort());
  });

  it.each([
    ["key usage", keyUsageRecord(ACME), `organization-${ACME}`],
    ["key usage without labels", labeled(keyUsageRecord(ACME)), `organization-${ACME}`],
    ["members", members(ACME), `organization-${ACME}`],
    ["backup settings of its service", backup(ACME), `service-${SERVICE}`],
  ])("includes %s that were created meanwhile", async (_, record, deleted) => {
    const records = withKeyInUse();
    recreate(records, record, deleted);
    expect((await records.run(`${DELETE} --yes`)).code).toBe(0);
    expect(records.names).toEqual([]);
  });

  it("keeps the records of an organization and of a service that were created again meanwhile", async () => {
    const records = withKeyInUse();
    const again = [organizationRecord({ id: ACME }), keyUsageRecord(ACME), service(ACME), backup(ACME)];
    records.intercept = ({ method, path }) => {
      if (method !== "DELETE" || !path.includes("/organization-")) return undefined;
      for (const record of again) records.put(record);
      return { body: {} };
    };
    expect((await records.run(`${DELETE} --yes`)).code).toBe(0);
    expect(records.names).toEqual(again.map(({ metadata }) => metadata.name).sort());
  });

  it("deletes what an organization has left", async () => {
    const other = organizationRecord({ id: NEW_OWNER });
    const records = new FakeRecords(
      other,
      keyUsageRecord(NEW_OWNER),
      keyUsageRecord(ACME),
      labeled(members(ACME)),
      backup(ACME),
    );
    const { code, err } = await records.run(`admin organization delete ${ACME}`);
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringContaining(
        `Delete 3 records that organization ${ACME} has left, with 0 API keys, 1 member?`,
      ),
    });
    expect(records.names).toEqual([`key-usage-${NEW_OWNER}`, other.metadata.name]);
    const again = await records.run(`admin organization delete ${ACME}`);
    expect(again).toMatchObject({
      code: 1,
      err: expect.stringContaining("There is no organization"),
      writes: [],
    });
  });

  it("names what is already deleted if the last look-up fails, and can be repeated", async () => {
    const records = withKeyInUse();
    recreate(records, keyUsageRecord(ACME), `organization-${ACME}`);
    const { intercept } = records;
    records.intercept = (request) =>
      request.method === "GET" && !records.names.includes(`organization-${ACME}`)
        ? status(403, "Forbidden", "no")
        : intercept(request);
    const { code, err } = await records.run(`${DELETE} --yes`);
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringContaining("Already deleted: 1 API key, 4 ConfigMaps."),
    });
    expect(records.names).toEqual([`key-usage-${ACME}`]);
    records.intercept = () => undefined;
    expect((await records.run(`${DELETE} --yes`)).code).toBe(0);
    expect(records.names).toEqual([]);
  });
});

describe("the deletion of a service", () => {
  const records = () => new FakeRecords(organizationRecord({ id: ACME }), service(ACME), backup(ACME));

  it.each([
    ["record", serviceRecord({ id: SERVICE, organizationId: ACME, namespace: "pipes", name: "important" })],
    ["backup settings", backup(ACME)],
  ])("deletes nothing if its %s changed while the question was open", async (_, change) => {
    const cluster = records();
    const { code, err, writes } = await cluster.run(`admin service delete ${SERVICE}`, () =>
      cluster.put(change),
    );
    expect({ code, writes }).toEqual({ code: 1, writes: [] });
    expect(err).toContain(
      `The record of service ${SERVICE} has changed since this command read it, so nothing was deleted.`,
    );
  });

  it("deletes nothing if the API created backup settings while the question was open", async () => {
    const cluster = new FakeRecords(organizationRecord({ id: ACME }), service(ACME));
    const { code, err, writes } = await cluster.run(`admin service delete ${SERVICE}`, () =>
      cluster.put(backup(ACME)),
    );
    expect({ code, writes }).toEqual({ code: 1, writes: [] });
    expect(err).toContain("so nothing was deleted.");
  });

  it("lists what is already deleted if the record changes at the last moment", async () => {
    const cluster = records();
    cluster.intercept = ({ method, path }) => {
      if (method === "DELETE" && path.includes("/backup-")) cluster.put(service(ACME));
      return undefined;
    };
    const { code, err } = await cluster.run(`admin service delete ${SERVICE} --yes`);
    expect(code).toBe(1);
    expect(err).toContain(
      " so it was not deleted. Check it, then run the command again. Already deleted: 1 ConfigMap.",
    );
    expect(cluster.names).toContain(`service-${SERVICE}`);
  });

  it("succeeds if the record was deleted while the question was open", async () => {
    const cluster = records();
    const { code } = await cluster.run(`admin service delete ${SERVICE}`, () =>
      cluster.delete(`service-${SERVICE}`),
    );
    expect(code).toBe(0);
    expect(cluster.names).toEqual([`organization-${ACME}`]);
  });

  it.each([
    ["its labels", backup(ACME)],
    ["no labels", labeled(backup(ACME))],
    ["the label of an earlier organization", backup(NEW_OWNER)],
  ])("includes backup settings with %s that the API creates meanwhile", async (_, recreated) => {
    const cluster = records();
    recreate(cluster, recreated, `service-${SERVICE}`);
    expect((await cluster.run(`admin service delete ${SERVICE} --yes`)).code).toBe(0);
    expect(cluster.names).toEqual([`organization-${ACME}`]);
  });

  it("keeps the backup settings of a service that is created again meanwhile", async () => {
    const cluster = records();
    cluster.intercept = ({ method, path }) => {
      if (method !== "DELETE" || !path.includes("/service-")) return undefined;
      cluster.put(service(ACME));
      cluster.put(backup(ACME));
      return { body: {} };
    };
    expect((await cluster.run(`admin service delete ${SERVICE} --yes`)).code).toBe(0);
    expect(cluster.names).toContain(`backup-${SERVICE}`);
  });

  it("deletes backup settings that a service has left, and then finds no service", async () => {
    const other = backup(ACME, randomUUID());
    const cluster = new FakeRecords(organizationRecord({ id: ACME }), backup(ACME), other);
    const words = `admin service delete ${SERVICE}`;
    const { code, err } = await cluster.run(words);
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringMatching(
        `Delete the settings that service ${SERVICE} has left\\? .*The settings of service ${SERVICE} are deleted.\n`,
      ),
    });
    expect(cluster.names).toEqual([`organization-${ACME}`, other.metadata.name].sort());
    const again = await cluster.run(words);
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining("There is no service"), writes: [] });
  });

  it("deletes nothing if the service is created while the question about its backup settings is open", async () => {
    const cluster = new FakeRecords(organizationRecord({ id: ACME }), backup(ACME));
    const { code, writes } = await cluster.run(`admin service delete ${SERVICE}`, () =>
      cluster.put(service(ACME)),
    );
    expect({ code, writes }).toEqual({ code: 1, writes: [] });
  });
});
