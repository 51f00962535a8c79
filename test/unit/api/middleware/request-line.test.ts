import fc from "fast-check";
import { expect, it } from "vitest";
import { RequestContext } from "../../../../src/api/middleware/request-context.ts";
import { requestLineWriter } from "../../../../src/api/middleware/request-line.ts";
import { createLogger } from "../../../../src/telemetry/log.ts";

const NOW = Date.UTC(2026, 1, 3, 4, 5, 6, 789);

function linesOf(level: "info" | "warn") {
  const lines: string[] = [];
  const log = createLogger(level, "api", { write: (line) => lines.push(line) });
  return { log, lines, write: requestLineWriter(log) };
}

const apiKey = fc.record({ id: fc.string(), organizationId: fc.string() });
const request = fc.record({
  requestId: fc.uuid({ version: 4 }),
  clientIp: fc.option(fc.oneof(fc.ipV4(), fc.ipV6()), { nil: undefined }),
  apiKey: fc.option(apiKey, { nil: undefined }),
  method: fc.constantFrom("GET", "PATCH", "M-SEARCH"),
  route: fc.constantFrom(undefined, "/v1/organizations/{organizationId}"),
  status: fc.integer({ min: 200, max: 499 }),
  durationMs: fc.double({ min: 0, max: 1e6, noNaN: true }),
});

it("the line of a request is the one that pino would write", () => {
  fc.assert(
    fc.property(request, ({ requestId, clientIp, apiKey: key, method, route, status, durationMs }) => {
      const { log, lines, write } = linesOf("info");
      const completed: Parameters<typeof write>[0] = {
        request: { method, originalUrl: "/", headers: {} },
        context: Object.assign(Object.create(RequestContext.prototype), {
          requestId,
          clientIp,
          key: key && { apiKey: key },
          error: undefined,
        }),
        route,
        status,
        durationMs,
      };
      write(completed, NOW);
      log.info(
        {
          requestId,
          client: clientIp,
          apiKey: key?.id,
          organization: key?.organizationId,
          method,
          route,
          status,
          durationMs: Math.round(durationMs * 1000) / 1000,
        },
        "request",
      );
      const [ours = "", pinos = ""] = lines;
      expect(ours).toBe(pinos.replace(/"time":".*?"/, '"time":"2026-02-03T04:05:06.789Z"'));
    }),
  );
});

it("a request is not logged above the level info", () => {
  const { lines, write } = linesOf("warn");
  const context = Object.create(RequestContext.prototype);
  const served = { request: { method: "GET", originalUrl: "/", headers: {} }, context, route: undefined };
  write({ ...served, status: 200, durationMs: 1 }, NOW);
  expect(lines).toEqual([]);
});
