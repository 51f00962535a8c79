import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { ORGANIZATION_LABEL, RESOURCE_LABEL, recordLabels } from "../../../../src/records/labels.ts";
import { organizationRecord } from "../../../support/fixtures/records.ts";
import { FakeRecords } from "./fake-records.ts";

const ACME = randomUUID();
const NAME = `members-${ACME}`;
const ADD = `admin member add --organization ${ACME} --user-id ada --name Ada --email ada@example.com --role admin`;

it.each([
  ["no labels", {}],
  ["only the label of records", { [RESOURCE_LABEL]: "members" }],
  ["only the label of the organization", { [ORGANIZATION_LABEL]: ACME }],
  ["all labels", recordLabels("members", ACME)],
])("a new member of a record with %s gets it all labels, and keeps others", async (_, labels) => {
  const metadata = { name: NAME, labels: { ...labels, team: "a" } };
  const records = new FakeRecords(organizationRecord({ id: ACME }), { kind: "ConfigMap", metadata });
  expect((await records.run(ADD)).code).toBe(0);
  expect(records.labelsOf(NAME)).toEqual({ ...recordLabels("members", ACME), team: "a" });
});
