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
