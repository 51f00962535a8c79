import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { DEFAULT_BACKUP_POLICY } from "../../../../src/domain/backup-policy.ts";
import { backupConfigMap } from "../../../../src/records/backup.ts";
import { organizationRecord, serviceRecord } from "../../../support/fixtures/records.ts";
import { FakeRecords } from "./fake-records.ts";

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
});
