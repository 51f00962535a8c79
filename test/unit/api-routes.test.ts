import { describe, expect, it } from "vitest";
import { pathOf } from "../../src/api/http-syntax.ts";
import { Problem } from "../../src/api/problem.ts";
import { type Operation, Router } from "../../src/api/routes.ts";
import { readOptions } from "../../src/cli/option.ts";
import { apiOptions, apiSettings } from "../../src/config.ts";

const serve = () => undefined;
const operation: Operation = {
  id: "any",
  tag: "Service",
  summary: "Any",
  description: "Any operation.",
  refusals: {},
};
const THING = "/v1/things/{thingId}";
const list = { method: "GET", path: "/v1/things", operation, serve } as const;
const read = { method: "GET", path: THING, operation, serve } as const;
const change = { method: "PATCH", path: THING, operation, serve } as const;
const router = new Router([list, read, change]);

function problemOf(method: string, path: string, at = router): Problem {
  try {
    at.match(method, path);
  } catch (error) {
    if (error instanceof Problem) return error;
  }
  throw new Error("a route matched");
}

describe("the router", () => {
  it.each([
    ["GET", "/v1/things", list, {}],
    ["HEAD", "/v1/things", list, {}],
    ["GET", "/v1/things/a%2Fb", read, { thingId: "a%2Fb" }],
    ["PATCH", "/v1/things/__proto__", change, { thingId: "__proto__" }],
  ])("knows what %s %s is for", (method, path, route, parameters) => {
    const match = router.match(method, path);
    expect(match.route).toBe(route);
    expect(Object.fromEntries(match.parameters)).toEqual(Object.fromEntries(Object.entries(parameters)));
  });

  it.each([
    "/v1",
    "/v1/things/",
    "/v1/Things",
    "/v1//things",
    "/v1/things/a/",
    "/v1/things//",
    "/v1/things/a/b",
    "v1/things",
    "",
  ])("has nothing at %j", (path) => {
    expect(problemOf("GET", path).status).toBe(404);
  });

  it.each([
    ["PATCH", "/v1/things", "GET, HEAD"],
    ["DELETE", "/v1/things/a", "GET, HEAD, PATCH"],
    ["OPTIONS", "/v1/things/a", "GET, HEAD, PATCH"],
    ["get", "/v1/things", "GET, HEAD"],
  ])("does not allow %s at %s", (method, path, allow) => {
    expect(problemOf(method, path)).toMatchObject({ status: 405, headers: ["Allow", allow] });
  });
});

describe("a path alias", () => {
  const aliased = new Router([list, read, change], new Map([["items", "things"]]));

  it("stands for a segment, beside that one's own name", () => {
    expect(aliased.match("GET", "/v1/items").route).toBe(list);
    expect(aliased.match("PATCH", "/v1/items/items")).toEqual({
      route: change,
      parameters: new Map([["thingId", "items"]]),
    });
    expect(aliased.match("GET", "/v1/things").route).toBe(list);
    expect(problemOf("PATCH", "/v1/items", aliased)).toMatchObject({ status: 405 });
  });

  it.each(["/items/things", "/v1/Items", "/v1/items/", "/items/a"])("is nothing at %s", (path) => {
    expect(problemOf("GET", path, aliased).status).toBe(404);
  });

  it.each([
    [
      ["items", "thing"],
      'The path alias "items" cannot stand for "thing", which is no segment of any operation\'s path; those are things.',
    ],
    [["items", "{thingId}"], "which is no segment"],
    [["v2", "v1"], "which is no segment"],
    [["things", "things"], "it is a segment of an operation's path itself."],
  ] as const)("cannot be %j", (alias, sentence) => {
    expect(() => new Router([list, read], new Map([alias]))).toThrow(sentence);
  });

  const settings = (pathAliases: string) => apiSettings(readOptions(apiOptions, { pathAliases }, {}));

  it("is written as name=name, with commas between", () => {
    expect(settings("a.b-c_~=things, ...=B2").pathAliases).toEqual(
      new Map([
        ["a.b-c_~", "things"],
        ["...", "B2"],
      ]),
    );
    expect(apiSettings(readOptions(apiOptions, {}, {})).pathAliases).toBeUndefined();
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
  ])("cannot be written %j", (text) => {
    expect(() => settings(text)).toThrow(
      `--path-aliases (or PIPE_SCALING_PATH_ALIASES) is ${JSON.stringify(text)}, but each of its values must be alias=segment`,
    );
  });

  it("cannot be given twice", () => {
    expect(() => settings("a=things,a=others")).toThrow("but no alias may come twice.");
  });
});

describe("the path of a target", () => {
  it.each([
    ["/v1/a?b=/c", "/v1/a"],
    ["/v1/a??", "/v1/a"],
    ["//v1/a", "//v1/a"],
    ["http://host/v1/a?b", "/v1/a"],
    ["HTTPS://host:1/v1/a", "/v1/a"],
    ["http://host", ""],
    ["http://host?/v1/a", ""],
    ["*", "*"],
  ])("of %s is %j", (target, path) => {
    expect(pathOf(target)).toBe(path);
  });
});
