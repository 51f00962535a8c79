import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergePatch } from "../../../src/runtime/merge-patch.ts";

/** Applies a merge patch like the API server (RFC 7386, section 2). */
function applied(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result = new Map(isMap(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, applied(result.get(key), value));
  }
  return Object.fromEntries(result);
}

function isMap(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// A status has no null values, because null means removal.
const { tree } = fc.letrec<{ tree: unknown; map: object }>((tie) => ({
  tree: fc.oneof(
    { depthSize: "small" },
    fc.integer(),
    fc.boolean(),
    fc.constantFrom("", "a", "b"),
    fc.array(tie("tree"), { maxLength: 3 }),
    tie("map"),
  ),
  map: fc.dictionary(fc.constantFrom("x", "y", "z"), tie("tree"), { noNullPrototype: true }),
}));
const map = fc.dictionary(fc.constantFrom("x", "y", "z"), tree, { noNullPrototype: true });

describe("a merge patch", () => {
  it("changes one object into the other", () => {
    fc.assert(
      fc.property(map, map, (from, to) => {
        const patch = mergePatch(from, to);
        expect(applied(from, patch ?? {})).toEqual(to);
      }),
    );
  });

  it("is empty for equal objects, regardless of the order of their keys", () => {
    fc.assert(
      fc.property(map, (value) => {
        const reversed = Object.fromEntries(Object.entries(structuredClone(value)).reverse());
        expect(mergePatch(value, reversed)).toBeUndefined();
      }),
    );
  });

  it("removes absent and undefined fields", () => {
    expect(mergePatch({ a: 1, b: 2 }, { b: undefined })).toEqual({ a: null, b: null });
    expect(mergePatch({}, { b: undefined })).toBeUndefined();
  });
});
