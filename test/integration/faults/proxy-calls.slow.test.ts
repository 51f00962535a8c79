import { afterAll, beforeAll, describe, it } from "vitest";
import { errorResponse } from "./faulty-proxy.ts";
import { ProxiedService } from "./proxied-service.ts";
import { first } from "./proxy-faults.ts";

let service: ProxiedService;
beforeAll(async () => {
  service = await ProxiedService.start();
});
afterAll(() => service.end());

const WRITES = [
  ["patch", "deployments"],
  ["patch", "pipescalings/status"],
  ["update", "leases"],
  ["create", "events"],
] as const;

describe("a call to the API server", () => {
  it.each(WRITES.slice(1))("can succeed and lose its response: %s %s", (verb, resource) =>
    service.rescaleUnder(first(1, verb, resource, { type: "lose-response" })),
  );

  it("can get one conflict after the other: patch pipescalings/status", () =>
    service.rescaleUnder(first(5, "patch", "pipescalings/status", errorResponse(409, "Conflict"))));

  it.each(WRITES.slice(0, 2))("can be lost: %s %s", (verb, resource) =>
    service.rescaleUnder(first(4, verb, resource, { type: "drop" })),
  );

  it.each(WRITES.slice(0, 2))("can get an incomplete response: %s %s", (verb, resource) =>
    service.rescaleUnder(first(2, verb, resource, { type: "pass", cutAfterBytes: 100 })),
  );

  it("times out without a response, and the controller continues", async () => {
    await service.rescaleUnder(first(1, "patch", "deployments", { type: "hold" }));
  });

  it("can fail with 500 for a while, like all others", async () => {
    let refused = 0;
    await service.rescaleUnder({
      handle: ({ resource }) => {
        if (resource === "leases") refused += 1;
        return errorResponse(500, "InternalError");
      },
      isOfWatches: true,
      isOver: () => refused >= 2,
    });
  });
});
