import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { keyRecord } from "../../../support/fixtures/records.ts";
import { FakeRecords } from "./fake-records.ts";

const { id, record } = keyRecord({ organizationId: randomUUID() });
const { name } = record.metadata;

it.each([
  ["type", { type: "Opaque" }, name],
  ["name", { metadata: { ...record.metadata, name: `${name}-k7h2f9m4t5` } }, `${name}-k7h2f9m4t5`],
])(
  "a command does not advise an edit of a wrong %s of a Secret, which Kubernetes would reject",
  async (part, changed, secret) => {
    const records = new FakeRecords({ ...record, ...changed });
    for (const command of ["show", "update", "rotate"]) {
      const words = `admin key ${command} ${id}${command === "update" ? " --name x" : ""}`;
      const { code, err, writes } = await records.run(words);
      expect({ code, writes, words }).toEqual({ code: 1, writes: [], words });
      expect(err).toContain(`The record of API key ${id} is malformed: the ${part} must be `);
      expect(err).toContain(`. No edit can change that: save the output of \`kubectl get secret ${secret} `);
      expect(err).toMatch(
        /`, delete the secret, and create it again from the corrected output, then run the command again\.\n$/,
      );
    }
  },
);

it("a command advises to edit a value, which an edit can change", async () => {
  const records = new FakeRecords({
    ...record,
    stringData: { ...record.stringData, createdAt: "yesterday" },
  });
  const { err } = await records.run(`admin key show ${id}`);
  expect(err).toContain(`. Fix it with \`kubectl edit secret ${name} `);
  expect(err).toMatch(/`, and write values as plain text under a new key stringData, then run the command/);
});
