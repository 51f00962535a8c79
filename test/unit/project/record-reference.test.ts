import { describe, expect, it } from "vitest";
import * as z from "zod";
import { DESCRIBED_RECORDS, RECORDS } from "../../../docs/reference/generator/record-kinds.ts";
import { inputSchema, undescribedKeys } from "../../../docs/reference/generator/records.ts";
import { parseApiKey } from "../../../src/records/api-key.ts";
import { RECORD_KINDS, recordKindOf } from "../../../src/records/kinds.ts";
import { RESOURCE_LABEL } from "../../../src/records/labels.ts";
import { nonEmpty, yamlValue } from "../../../src/records/parse.ts";

describe("the reference of records", () => {
  it.each(DESCRIBED_RECORDS)("describes every key of %s", (kind) => {
    expect(undescribedKeys(inputSchema(RECORDS[kind].schema))).toEqual([]);
  });

  it("rejects a key without a description, even inside a YAML value", () => {
    const schema = z.object({
      name: nonEmpty,
      list: yamlValue(z.array(z.object({ id: z.string() }))).meta({ description: "A list." }),
    });
    expect(undescribedKeys(inputSchema(schema))).toEqual(["name", "list[].id"]);
  });
});

describe("the example of a record", () => {
  it.each(Object.entries(RECORD_KINDS))("%s is well-formed, with its label", (kind, { parse }) => {
    const { example } = RECORDS[recordKindOf({ [RESOURCE_LABEL]: kind }) ?? "tiers"];
    expect(recordKindOf(example.metadata.labels)).toBe(kind);
    const results = [...parse(example)];
    expect(results).not.toEqual([]);
    for (const result of results) expect(result).toMatchObject({ ok: true });
  });

  it("api-key is well-formed", () => {
    const { metadata, stringData = {} } = RECORDS["api-key"].example;
    const encoded = Object.entries(stringData).map(([name, value]) => [name, btoa(value)]);
    expect(parseApiKey(metadata.name, metadata.labels, Object.fromEntries(encoded))).toMatchObject({
      ok: true,
    });
  });

  it.each(DESCRIBED_RECORDS)("%s has every key", (kind) => {
    const keys = Object.keys(inputSchema(RECORDS[kind].schema).properties ?? {});
    // In angle brackets: keys that are IDs or names.
    const fixed = keys.filter((key) => !key.startsWith("<"));
    const { data, stringData } = RECORDS[kind].example;
    if (fixed.length > 0) expect(Object.keys(data ?? stringData ?? {}).toSorted()).toEqual(fixed.toSorted());
    else expect(keys).toHaveLength(1);
  });
});
