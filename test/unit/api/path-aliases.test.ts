import { describe, expect, it } from "vitest";
import { expressPaths, requirePathAliases } from "../../../src/api/path-aliases.ts";
import { OPERATIONS } from "../../../src/api/resources/operations.ts";
import { apiSettings, toApiSettings } from "../../../src/settings/api.ts";
import { readOptions } from "../../../src/settings/option.ts";

describe("a path alias", () => {
  it("adds a path after the original one", () => {
    expect(expressPaths("/v1/things/{thingId}/parts", new Map([["items", "things"]]))).toEqual([
      "/v1/things/:thingId/parts",
      "/v1/items/:thingId/parts",
    ]);
  });

  it("is combined with the aliases of other segments", () => {
    const aliases = new Map([
      ["items", "things"],
      ["objects", "things"],
      ["pieces", "parts"],
    ]);
    expect(expressPaths("/v1/things/parts", aliases)).toHaveLength(6);
  });

  it("does not change paths without its segment", () => {
    expect(expressPaths("/v1/others", new Map([["items", "things"]]))).toEqual(["/v1/others"]);
  });

  it.each([
    [
      ["items", "thing"],
      /^The path alias "items" cannot stand for "thing", which is not a segment of any path; the segments are organizations, /,
    ],
    [["items", "{serviceId}"], /which is not a segment/],
    [["v2", "v1"], /which is not a segment/],
    [["keys", "services"], /because it is a segment of a path itself\.$/],
  ] as const)("cannot be %j", (alias, sentence) => {
    expect(() => requirePathAliases(OPERATIONS, new Map([alias]))).toThrow(sentence);
  });

  const settings = (pathAliases: string) => toApiSettings(readOptions(apiSettings, { pathAliases }, {}));

  it("is written as name=name, with commas between", () => {
    expect(settings("a.b-c_~=things, ...=B2").pathAliases).toEqual(
      new Map([
        ["a.b-c_~", "things"],
        ["...", "B2"],
      ]),
    );
    expect(toApiSettings(readOptions(apiSettings, {}, {})).pathAliases).toEqual(new Map());
  });

  it.each([
    "items",
    "=things",
    "items=",
    "a=b=c",
    "a/b=things",
    "a%2F=things",
    "ä=things",
    ".=things",
    "..=things",
  ])("cannot be written as %j", (text) => {
    expect(() => settings(text)).toThrow(
      `--path-aliases (or PIPE_SCALING_PATH_ALIASES) is ${JSON.stringify(text)}, but each value must be alias=segment`,
    );
  });

  it("cannot be given twice", () => {
    expect(() => settings("a=things,a=others")).toThrow("but each alias may occur only once.");
  });
});
