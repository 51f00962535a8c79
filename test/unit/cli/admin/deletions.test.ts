import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { DEFAULT_BACKUP_POLICY } from "../../../../src/domain/backup-policy.ts";
import { backupConfigMap } from "../../../../src/records/backup.ts";
import { keyRecord, organizationRecord, serviceRecord } from "../../../support/fixtures/records.ts";
import { FakeRecords, keyUsageRecord, status } from "./fake-records.ts";

const ACME = randomUUID();
const NEW_OWNER = randomUUID();
const SERVICE = randomUUID();

const service = (organizationId: string) =>
  serviceRecord({ id: SERVICE, organizationId, namespace: "pipes", name: "orders" });
const backup = (organizationId: string, serviceId = SERVICE) =>
  backupConfigMap(serviceId, organizationId, DEFAULT_BACKUP_POLICY);

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
});
