import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parse as parseYaml, stringify } from "yaml";
import { problemOf, toKeyUsageView, toMembersView } from "../../../src/api/cluster/views.ts";
import { parseApiKey } from "../../../src/records/api-key.ts";
import { keyUsageConfigMapName } from "../../../src/records/key-usage.ts";
import {
  type Member,
  membersConfigMap,
  membersConfigMapName,
  parseMembers,
} from "../../../src/records/members.ts";
import { parseOrganization } from "../../../src/records/organization.ts";
import type { Parsed } from "../../../src/records/parse.ts";
import { readYaml } from "../../../src/records/yaml.ts";
import { keyRecord, organizationRecord } from "../../support/fixtures/records.ts";

const KIB = 1024;

/** The problem of an organization with this value, or `undefined` if it is well-formed. */
function problemWith(data: Record<string, string>): string | undefined {
  const { metadata, data: values } = organizationRecord({}, data);
  const parsed = parseOrganization(metadata.name, values);
  return parsed.ok ? undefined : parsed.problem;
}

/** A text of at most 60 KiB, made of numbered parts. */
function filled(part: (at: number) => string): string {
  const parts: string[] = [];
  for (let length = 0; length < 60 * KIB; length += parts.at(-1)?.length ?? 0) parts.push(part(parts.length));
  return parts.join("");
}

describe("a record", () => {
  it("is not parsed if it is longer than 64 KiB", () => {
    expect(problemWith({ byocConfig: "]".repeat(100_000) })).toMatch(
      /^the record: it has 100\d{3} bytes, and at most 65536 are allowed; the longest value is byocConfig with 100010$/,
    );
  });

  it("is measured in bytes of UTF-8, in all its values together", () => {
    const values = { byocConfig: "é".repeat(17_000), privateEndpoints: "é".repeat(17_000) };
    expect(problemWith(values)).toMatch(/^the record: it has 68\d{3} bytes/);
  });

  it("is measured with keys that the API does not read", () => {
    expect(problemWith({ note: "a".repeat(70_000) })).toMatch(/^the record: it has 70\d{3} bytes/);
  });

  it("may have a list of 1300 addresses with descriptions", () => {
    const list = Array.from({ length: 1300 }, (_, at) => ({
      source: `10.1.${at >> 8}.${at & 255}`,
      description: `office ${at}`,
    }));
    const { record } = keyRecord({ organizationId: randomUUID(), ipAccessList: list });
    const data = { ...record.stringData, ipAccessList: stringify(list) };
    const encoded = Object.entries(data).map(([key, text]) => [key, Buffer.from(text).toString("base64")]);
    const parsed = parseApiKey(record.metadata.name, record.metadata.labels, Object.fromEntries(encoded));
    expect(parsed).toMatchObject({ ok: true, value: { ipAccessList: list } });
  });

  it.each([
    ["one syntax error for each character", "]".repeat(60 * KIB), "UNEXPECTED_TOKEN at line 1, column 1"],
    ["many unclosed quotes", filled(() => '"'), "tokens, at line 1, column 60001"],
    ["lists nested without an end", "[".repeat(60 * KIB), "levels deep"],
    ["maps nested by indentation", filled((at) => `${" ".repeat(at)}a:\n`), "levels deep"],
    ["lists nested in one line", filled(() => "- "), "levels deep"],
    ["many keys", filled((at) => `k${at}: \n`), "tokens, at line 6001, column 1"],
    ["many keys in a flow map", `{${filled((at) => `k${at},`)}}`, "tokens, at line 1"],
    ["many tags", filled(() => "!a "), "tokens, at line 1"],
    ["many anchors", filled((at) => `- &a${at} b\n`), "tokens, at line"],
    ["many aliases", `- &a b\n${filled(() => "- *a\n")}`, "tokens, at line"],
    ["many documents", filled(() => "---\n"), "tokens, at line 15001"],
    ["many directives", filled(() => "%a\n"), "tokens, at line 15001"],
    ["many invalid escapes", `"${filled(() => "\\x")}"`, "tokens, at line 1"],
    ["an invalid escape", '"\\x"', "BAD_DQ_ESCAPE at line 1, column 2"],
    ["a second document", "[]\n---\n[]\n", "MULTIPLE_DOCS at line 2, column 1"],
    ["an alias", "[&a {accountName: a, id: b}, *a]", "is not YAML without aliases"],
    ["a key twice", "[{id: a,\naccountName: b, id: c}]", "DUPLICATE_KEY at line 2, column 17"],
    ["a list as a key", "[{[a]: b}]", "NON_STRING_KEY at line 1, column 3"],
  ])("with %s in a value has one short problem", (_what, byocConfig, problem) => {
    const found = problemWith({ byocConfig });
    expect(found).toContain(problem);
    expect(found).toMatch(/^byocConfig: .{1,120}$/);
  });

  it("with thousands of invalid entries describes five of them and counts the others", () => {
    const problem = problemWith({ byocConfig: `[${"{},".repeat(5000)}]` }) ?? "";
    expect(problem).toContain("2.accountName: ");
    expect(problem).not.toContain("3.accountName: ");
    expect(problem).toMatch(/; and 9995 more$/);
  });

  it.each([
    ["longer than 500 characters", `${"0,".repeat(250)}0 2 * * 6`, "must not be longer than 500 characters"],
    ["empty", "", "must not be empty"],
  ])("with a schedule that is %s has one problem", (_what, schedule, problem) => {
    const rolloutWindow = `{schedule: "${schedule}", duration: 4h}`;
    expect(problemWith({ rolloutWindow })).toBe(`rolloutWindow: its schedule ${problem}`);
  });

  it("with an unknown key of a window describes only the beginning of its name", () => {
    const problem = problemWith({ rolloutWindow: `{"${"k".repeat(1000)}": a}` }) ?? "";
    expect(problem).toMatch(/^rolloutWindow: it/);
    expect(problem.length).toBeLessThan(600);
  });
});

describe("a value of a record in YAML", () => {
  const TEXT = fc.string({ unit: "grapheme", maxLength: 20 });
  const VALUE = fc.array(fc.dictionary(TEXT, fc.oneof(TEXT, fc.array(TEXT, { maxLength: 3 }))), {
    maxLength: 5,
  });

  it("reads as the parser of the library reads it, in block style, in flow style and as JSON", () => {
    fc.assert(
      fc.property(VALUE, (value) => {
        for (const text of [
          stringify(value),
          stringify(value, { collectionStyle: "flow" }),
          JSON.stringify(value),
        ]) {
          const expected: unknown = parseYaml(text, { schema: "failsafe" });
          expect(readYaml(text, "failsafe")).toEqual({ ok: true, value: expected });
        }
      }),
    );
  });

  it.each(["", "# nothing\n"])("reads %j as null", (text) => {
    expect(readYaml(text, "failsafe")).toEqual({ ok: true, value: parseYaml(text, { schema: "failsafe" }) });
  });
});

describe("a record of members", () => {
  const NAME = membersConfigMapName(randomUUID());
  const member = (at: number): Member => ({
    userId: `user-${at}`,
    name: `Member ${at}`,
    email: `member-${at}@example.com`,
    role: "developer",
    joinedAt: new Date("2026-01-31T12:00:00Z"),
  });
  const members = (count: number) =>
    membersConfigMap(
      randomUUID(),
      Array.from({ length: count }, (_, at) => member(at)),
    ).data;
  const problems = (of: Iterable<Parsed<unknown>>) =>
    [...of].flatMap((each) => (each.ok ? [] : [each.problem]));

  it("may have 1500 members", () => {
    const parsed = parseMembers(NAME, members(1500));
    expect(parsed.size).toBe(1500);
    expect(problems(parsed.values())).toEqual([]);
  });

  it("is not parsed if it is longer than 256 KiB, but still has all its keys", () => {
    const parsed = parseMembers(NAME, members(5000));
    expect(parsed.size).toBe(5000);
    expect(new Set(problems(parsed.values()))).toEqual(
      new Set([expect.stringMatching(/^the record: it has \d{6} bytes, and at most 262144 are allowed/)]),
    );
  });

  it("has only one malformed member if one entry is longer than 2048 bytes", () => {
    const parsed = parseMembers(NAME, { ...members(3), long: `name: ${"a".repeat(2048)}` });
    expect(problems(parsed.values())).toEqual(["long: is longer than 2048 bytes"]);
  });

  it("is not parsed any further after 20 malformed entries", () => {
    const malformed = Array.from({ length: 1000 }, (_, at) => [`bad-${at}`, "]"]);
    const parsed = parseMembers(NAME, { ...Object.fromEntries(malformed), ...members(1) });
    expect(parsed.size).toBe(1001);
    expect(problems(parsed.values()).slice(20)).toEqual(
      Array<string>(981).fill("the record: entries after 20 malformed ones are not read"),
    );
  });

  it("is logged with five problems and the number of the others", () => {
    const metadata = { name: NAME, uid: "u", resourceVersion: "1" };
    const data = Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`bad-${at}`, "]"]));
    expect(problemOf(toMembersView({ metadata, data }))).toMatch(
      /^bad-0: [^;]*(; bad-[1-4]: [^;]*){4}; and 7 more$/,
    );
  });
});

describe("a record of key usage", () => {
  it("that is too long has one problem, and still has all its keys", () => {
    const metadata = { name: keyUsageConfigMapName(randomUUID()), uid: "u", resourceVersion: "1" };
    const data = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`key-${at}`, ""]));
    const view = toKeyUsageView({ metadata, data });
    expect(view.usage.size).toBe(20_000);
    expect(problemOf(view)).toMatch(
      /^the record: it has \d{6} bytes, and at most 65536 are allowed[^;]*; the longest [^;]*$/,
    );
  });
});
