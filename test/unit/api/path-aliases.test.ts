import { describe, expect, it } from "vitest";
import { expressPaths } from "../../../src/api/path-aliases.ts";
import { OPERATIONS } from "../../../src/api/resources/operations.ts";
import { apiSettings, toApiSettings } from "../../../src/settings/api.ts";
import { readOptions } from "../../../src/settings/option.ts";
import { PATH_SEGMENTS } from "../../../src/settings/path-aliases.ts";

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

  it("can stand for every segment of the operations except the version", () => {
    const literals = OPERATIONS.flatMap(({ path }) => path.split("/")).filter((each) =>
      /^[a-z]+$/i.test(each),
    );
    const message =
      "PATH_SEGMENTS of src/settings/path-aliases.ts and the paths of OPERATIONS in src/api/resources/operations.ts differ: change one of them, then run npm run generate";
    expect(new Set(PATH_SEGMENTS), message).toEqual(new Set(literals));
  });

  const settings = (pathAliases: string) => toApiSettings(readOptions(apiSettings, { pathAliases }, {}));

  it("is written as alias=segment, and several aliases are separated by commas", () => {
    expect(settings("a.b-c_~=services, ...=keys").pathAliases).toEqual(
      new Map([
        ["a.b-c_~", "services"],
        ["...", "keys"],
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
    expect(() => settings("a=keys,a=services")).toThrow("but each alias may occur only once.");
  });

  it.each(["items=thing", "items=KEYS", "v2=v1", "a=keys,items=thing"])(
    "cannot be written as %j, because no path has this segment",
    (text) => {
      expect(() => settings(text)).toThrow(
        /^--path-aliases \(or PIPE_SCALING_PATH_ALIASES\) is ".+", but the segment (thing|KEYS|v1) does not exist: it must be organizations, .+ or \w+\.$/,
      );
    },
  );

  it("cannot be a segment itself", () => {
    expect(() => settings("keys=services")).toThrow("but the alias keys must not be a segment itself.");
  });
});
