import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { organizationRecord } from "../../../support/fixtures/records.ts";
import { FakeRecords, status } from "./fake-records.ts";

const ACME = randomUUID();

async function createService(code: number, reason: string, message: string) {
  const records = new FakeRecords(organizationRecord({ id: ACME }));
  records.intercept = ({ method }) => (method === "POST" ? status(code, reason, message) : undefined);
  return await records.run(
    `admin service create --organization ${ACME} --name orders --pipes-namespace pipes`,
  );
}

it("says that a record exists if the API server says so", async () => {
  const { code, err } = await createService(409, "AlreadyExists", 'configmaps "service-x" already exists');
  expect({ code, err }).toEqual({
    code: 1,
    err: expect.stringMatching(/^The service with the ID \S+ already exists, and nothing was changed\.\n$/),
  });
});

it.each([
  ["a conflict on a quota", "Conflict", 'Operation cannot be fulfilled on resourcequotas "q"'],
  ["the 409 of a webhook", "", 'admission webhook "w.example.com" denied the request: frozen'],
])(
  "shows the message of the API server, and not that a record exists, after %s",
  async (_, reason, message) => {
    const { code, err } = await createService(409, reason, message);
    expect(code).toBe(1);
    expect(err).toMatch(/^The Kubernetes API rejected the request: POST \S+: 409 /);
    expect(err).toContain(message);
  },
);
