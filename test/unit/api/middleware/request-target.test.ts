import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isPathMalformed, normalizeTarget, pathOf } from "../../../../src/api/middleware/request-target.ts";

describe("the path of a request target", () => {
  it.each([
    ["/v1/a?b=/c", "/v1/a"],
    ["/v1/a??", "/v1/a"],
    ["//v1/a", "//v1/a"],
    ["http://host/v1/a?b", "/v1/a"],
    ["HTTPS://host:1/v1/a", "/v1/a"],
    ["http://host", "/-"],
    ["http://host?/v1/a", "/-"],
    ["*", "/-*"],
    ["http://[::1", "/-"],
    ["/v1/a#b", "/v1/a%23b"],
  ])("is extracted from %s as %j", (target, path) => {
    expect(pathOf(target)).toBe(path);
  });
});

function normalized(target: string) {
  const request = new IncomingMessage(new Socket());
  request.url = target;
  normalizeTarget(request);
  return { path: request.url, isMalformed: isPathMalformed(request) };
}

describe("a request target that is not percent-encoded UTF-8", () => {
  it.each(["/v1/%zz", "/v1/%c0%af", "/v1/%", "/v1/a%2"])(
    "is kept literally and marked as malformed: %s",
    (target) => {
      const { path, isMalformed } = normalized(target);
      expect(isMalformed).toBe(true);
      expect(decodeURIComponent(path)).toBe(target);
    },
  );

  it("never results in a path that cannot be decoded or is not absolute", () => {
    fc.assert(
      fc.property(fc.string(), (target) => {
        const { path } = normalized(target);
        expect(path.startsWith("/")).toBe(true);
        expect(() => decodeURIComponent(path)).not.toThrow();
      }),
    );
  });
});
