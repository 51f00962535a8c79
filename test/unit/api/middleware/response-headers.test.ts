import { expect, it } from "vitest";
import { JSON_HEADERS, responseHeaders } from "../../../../src/api/middleware/response-headers.ts";

const namesOf = (headers: readonly string[]) => headers.filter((_, at) => at % 2 === 0).sort();

it("JSON has the security headers that mean something for it, and no others", () => {
  expect(namesOf(JSON_HEADERS)).toEqual([
    "Cache-Control",
    "Content-Security-Policy",
    "Content-Type",
    "Cross-Origin-Resource-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
  ]);
});

it("a page has all headers of helmet", () => {
  const headers = responseHeaders("text/html", { "default-src": ["'self'"] });
  expect(namesOf(headers)).toEqual([
    "Cache-Control",
    "Content-Security-Policy",
    "Content-Type",
    "Cross-Origin-Opener-Policy",
    "Cross-Origin-Resource-Policy",
    "Origin-Agent-Cluster",
    "Referrer-Policy",
    "Strict-Transport-Security",
    "X-Content-Type-Options",
    "X-Dns-Prefetch-Control",
    "X-Download-Options",
    "X-Frame-Options",
    "X-Permitted-Cross-Domain-Policies",
    "X-Xss-Protection",
  ]);
  expect(headers[headers.indexOf("X-Frame-Options") + 1]).toBe("DENY");
  expect(headers[headers.indexOf("Content-Security-Policy") + 1]).toBe("default-src 'self'");
});
