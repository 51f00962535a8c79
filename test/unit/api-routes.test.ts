import { describe, expect, it } from "vitest";
import { pathOf } from "../../src/api/http-syntax.ts";
import { Problem } from "../../src/api/problem.ts";
import { Router } from "../../src/api/routes.ts";

const serve = () => undefined;
const THING = "/v1/things/{thingId}";
const list = { method: "GET", path: "/v1/things", serve } as const;
const read = { method: "GET", path: THING, serve } as const;
const change = { method: "PATCH", path: THING, serve } as const;
const router = new Router([list, read, change]);

function problemOf(method: string, path: string): Problem {
  try {
    router.match(method, path);
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
