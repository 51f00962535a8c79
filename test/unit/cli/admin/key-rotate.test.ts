import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { formatSecretHashes, sha256 } from "../../../../src/records/api-key.ts";
import { keyRecord, organizationRecord } from "../../../support/fixtures/records.ts";
import { type FakeRecord, FakeRecords } from "./fake-records.ts";

const ACME = randomUUID();
const KEY = keyRecord({ organizationId: ACME });

function withSecrets(secrets: readonly string[], name = "ci"): FakeRecord {
  const secretHash = formatSecretHashes(secrets.map(sha256));
  return { ...KEY.record, stringData: { ...KEY.record.stringData, name, secretHash } };
}

/** Drops a secret, and answers only after another person has written this record. */
async function drop(flag: "--finish" | "--cancel", meanwhile: FakeRecord) {
  const records = new FakeRecords(organizationRecord({ id: ACME }), withSecrets(["a", "b"]));
  return await records.run(`admin key rotate ${KEY.id} ${flag}`, () => void records.put(meanwhile));
}

it.each(["table", "json", "yaml"])(
  "as %s, a new secret comes with the command that drops it",
  async (format) => {
    const records = new FakeRecords(organizationRecord({ id: ACME }), withSecrets(["a"]));
    const rotated = await records.run(`admin key rotate ${KEY.id} --output ${format}`);
    expect(rotated.err).toContain(
      `If it is lost, drop it: pipe-scaling admin key rotate ${KEY.id} --cancel `,
    );
    records.intercept = ({ method }) => (method === "POST" ? { body: {} } : undefined);
    const words = `admin key create --organization ${ACME} --name ci --role admin --output ${format}`;
    const { out, err } = await records.run(words);
    const [, id = "none"] =
      /If it is lost, delete the key: pipe-scaling admin key delete (\S{36}) /.exec(err) ?? [];
    expect(out).toContain(id);
  },
);

it("a new secret whose output fails leaves the command that drops it on standard error", async () => {
  const records = new FakeRecords(organizationRecord({ id: ACME }), withSecrets(["a"]));
  records.isOutputBroken = true;
  const rotated = await records.run(`admin key rotate ${KEY.id}`);
  expect(rotated).toMatchObject({ code: 1, out: "", writes: [{ method: "PATCH" }] });
  expect(rotated.err).toContain(`drop it: pipe-scaling admin key rotate ${KEY.id} --cancel `);
  records.intercept = ({ method }) => (method === "POST" ? { body: {} } : undefined);
  const created = await records.run(`admin key create --organization ${ACME} --name ci --role admin`);
  const [, id] = /delete the key: pipe-scaling admin key delete (\S{36}) /.exec(created.err) ?? [];
  const writes = [{ method: "POST", body: { stringData: { id } } }];
  expect(created).toMatchObject({ code: 1, out: "", writes });
});

describe("the end of a rotation", () => {
  it.each(["--finish", "--cancel"] as const)(
    "%s changes nothing if either secret was replaced",
    async (flag) => {
      for (const secrets of [["a", "c"], ["c", "b"], ["b", "c"], ["b", "a"], ["a"], ["b"]]) {
        const { code, err, writes } = await drop(flag, withSecrets(secrets));
        expect({ code, writes, secrets }).toEqual({ code: 1, writes: [], secrets });
        expect(err).toContain(`The secrets of API key ${KEY.id} were changed by another writer`);
      }
    },
  );

  it.each([
    ["--finish", "b"],
    ["--cancel", "a"],
  ] as const)("%s keeps a change of the name", async (flag, kept) => {
    const { code, writes } = await drop(flag, withSecrets(["a", "b"], "renamed"));
    const secretHash = btoa(formatSecretHashes([sha256(kept)]));
    expect({ code, bodies: writes.map(({ body }) => body) }).toMatchObject({
      code: 0,
      bodies: [{ data: { secretHash } }],
    });
  });
});
