import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { RECORDS } from "../../../docs/reference/generator/record-kinds.ts";
import { problemOf, toKeyView, toRecordView } from "../../../src/api/cluster/views.ts";
import { KEYS } from "../../../src/cli/admin/kinds.ts";
import type { Secret } from "../../../src/kube/objects.ts";
import { RECORD_KINDS, recordKindOf } from "../../../src/records/kinds.ts";
import { API_KEY_SECRET_TYPE, RESOURCE_LABEL } from "../../../src/records/labels.ts";
import { keyRecord } from "../../support/fixtures/records.ts";

describe.each(Object.entries(RECORD_KINDS))("a record of %s", (kind, { name: nameOf, parse }) => {
  const { example } = RECORDS[recordKindOf({ [RESOURCE_LABEL]: kind }) ?? "tiers"];
  const named = (name: string) => ({
    ...example,
    metadata: { ...example.metadata, name, uid: "u", resourceVersion: "1" },
  });
  const problemInApi = (name: string) => problemOf(toRecordView(named(name), () => true));

  it("is well-formed under the name with the ID of its owner", () => {
    const name = nameOf(randomUUID());
    expect([...parse(named(name))]).toEqual([expect.objectContaining({ ok: true })]);
    expect(problemInApi(name)).toBeUndefined();
  });

  it.each([
    ["of an organization in words", nameOf("acme")],
    ["with an appended hash", `${nameOf(randomUUID())}-k7h2f9m4t5`],
    ["with an ID in upper case", nameOf("2C7C0A3E-8F0C-4B35-9D5B-0D9E7C4B7A10")],
    ["without a prefix", randomUUID()],
    ["of another kind", `another-${randomUUID()}`],
  ])("is malformed under a name %s, because nothing reads it", (_, name) => {
    const problem = expect.stringMatching(`^the name must be ${kind}-<lowercase UUID>$`);
    expect([...parse(named(name))]).toEqual([{ ok: false, problem, isImmutable: true }]);
    expect(problemInApi(name)).toEqual(problem);
  });
});

describe("the Secret of an API key", () => {
  const { record } = keyRecord({ organizationId: randomUUID() });
  const { name } = record.metadata;
  const data = Object.entries(record.stringData).map(([key, text]) => [key, btoa(String(text))]);
  const secret = (named: string, type: string | undefined = API_KEY_SECRET_TYPE): Secret => ({
    metadata: { ...record.metadata, name: named, uid: "u", resourceVersion: "1" },
    type,
    data: Object.fromEntries(data),
  });

  it("is well-formed under its name and type", () => {
    expect(KEYS.parse(secret(name))).toMatchObject({ ok: true });
    expect(problemOf(toKeyView(secret(name)))).toBeUndefined();
  });

  it.each([
    ["with an appended hash", `${name}-k7h2f9m4t5`],
    ["in words", "api-key-ci"],
    ["with a hash that is too short", name.slice(0, -1)],
    ["without a prefix", name.slice("api-key-".length)],
    ["with another prefix", `my-${name}`],
  ])("is malformed under a name %s, with which no caller is accepted", (_, named) => {
    const problem = expect.stringContaining("the name must be api-key-<SHA-256 of the key ID");
    expect(KEYS.parse(secret(named))).toEqual({ ok: false, problem, isImmutable: true });
    expect(problemOf(toKeyView(secret(named)))).toEqual(problem);
  });

  it.each(["Opaque", ""])("is malformed with the type %j, which the API does not select", (type) => {
    expect(KEYS.parse(secret(name, type))).toEqual({
      ok: false,
      problem: "the type must be pipes.clouddb.dev/api-key",
      isImmutable: true,
    });
  });
});
