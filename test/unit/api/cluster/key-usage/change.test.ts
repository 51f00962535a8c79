import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { keyUsageChange } from "../../../../../src/api/cluster/key-usage/change.ts";
import { keyUsageConfigMapName, parseKeyUsage } from "../../../../../src/records/key-usage.ts";

const NONE: ReadonlySet<string> = new Set();

/** Entries of a record: one per key, each a minute later than the previous one, starting with `key0`. */
function entries(count: number): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`key${index}`, new Date(index * 60_000).toISOString()]),
  );
}

function changeOf(record: Record<string, string>, uses: Record<string, number>, keys = NONE) {
  return keyUsageChange(
    parseKeyUsage(keyUsageConfigMapName(randomUUID()), record),
    new Map(Object.entries(uses)),
    keys,
  );
}

describe("the change to a key-usage record", () => {
  it("contains the uses that are newer than those in the record or missing from it", () => {
    const record = {
      older: "1970-01-01T00:01:00Z",
      same: "1970-01-01T00:02:00Z",
      newer: "1970-01-01T00:03:00Z",
    };
    expect(changeOf(record, { older: 2, same: 2, newer: 2, absent: 2 })).toEqual({
      used: new Map([
        ["older", new Date("1970-01-01T00:02:00Z")],
        ["absent", new Date("1970-01-01T00:02:00Z")],
      ]),
      removed: [],
    });
  });

  it("is empty if the record already has all uses, in any date format", () => {
    const record = { a: "1970-01-01T01:02:31+01:00", b: "2099-01-01T00:00:00Z" };
    expect(changeOf(record, { a: 2, b: 2 })).toBeUndefined();
  });

  it("replaces malformed entries", () => {
    expect(changeOf({ a: "yesterday" }, { a: 0 })?.used).toEqual(new Map([["a", new Date(0)]]));
  });
});

describe("the entries of deleted keys", () => {
  it("are kept while the record is small", () => {
    expect(changeOf(entries(499), { new: 1000 })?.removed).toEqual([]);
  });

  it("are removed when the record has more than 500 entries: malformed ones first, then the least recently used ones", () => {
    expect(changeOf({ ...entries(500), odd: "yesterday" }, { new: 1000 })?.removed).toEqual(["odd", "key0"]);
  });

  it("are removed before those of existing keys, which are never removed", () => {
    const keys = new Set(["key0", "key2"]);
    const change = changeOf(entries(501), { key1: 1000, new: 1000 }, keys);
    expect(change?.removed).toEqual(["key3", "key4"]);
    const everyKey = new Set(Object.keys(entries(600)));
    expect(changeOf(entries(600), { new: 1000 }, everyKey)?.removed).toEqual([]);
  });
});
