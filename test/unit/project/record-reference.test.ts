import { describe, expect, it } from "vitest";
import * as z from "zod";
import { RECORD_EXAMPLES } from "../../../docs/reference/generator/record-examples.ts";
import {
  type DescribedRecord,
  inputSchema,
  RECORD_SCHEMAS,
  undescribedKeys,
} from "../../../docs/reference/generator/records.ts";
import { parseApiKey } from "../../../src/records/api-key.ts";
import { parseBackup } from "../../../src/records/backup.ts";
import { parseKeyUsage } from "../../../src/records/key-usage.ts";
import { parseMembers } from "../../../src/records/members.ts";
import { parseOrganization } from "../../../src/records/organization.ts";
import { nonEmpty, yamlValue } from "../../../src/records/parse.ts";
import { parseService } from "../../../src/records/service.ts";

const kinds = Object.entries(RECORD_SCHEMAS);

describe("the reference of records", () => {
  it.each(kinds)("describes every key of %s", (_, schema) => {
    expect(undescribedKeys(inputSchema(schema))).toEqual([]);
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
  const { organization, service, members, backup } = RECORD_EXAMPLES;
  const key = RECORD_EXAMPLES["api-key"];
  const usage = RECORD_EXAMPLES["key-usage"];
  const encoded = Object.entries(key.stringData ?? {}).map(([name, value]) => [name, btoa(value)]);

  it.each([
    ["organization", () => parseOrganization(organization.metadata.name, organization.data)],
    ["service", () => parseService(service.metadata.name, service.metadata.labels, service.data)],
    ["api-key", () => parseApiKey(key.metadata.labels, Object.fromEntries(encoded))],
    ["members", () => [...parseMembers(members.data).values()][0]],
    ["backup", () => parseBackup(backup.metadata.name, backup.data)],
    ["key-usage", () => [...parseKeyUsage(usage.data).values()][0]],
  ] as const)("%s is well-formed", (_, parse) => {
    expect(parse()).toMatchObject({ ok: true });
  });

  const withFixedKeys: readonly DescribedRecord[] = ["organization", "service", "api-key", "backup"];
  it.each(withFixedKeys)("%s has every key", (kind) => {
    const { data, stringData } = RECORD_EXAMPLES[kind];
    const keys = Object.keys(inputSchema(RECORD_SCHEMAS[kind]).properties ?? {});
    expect(Object.keys(data ?? stringData ?? {}).toSorted()).toEqual(keys.toSorted());
  });
});
