import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { objectPath } from "../../../src/kube/paths.ts";
import { errorResponse, type Handling, type ProxiedRequest } from "./faulty-proxy.ts";
import { ProxiedService } from "./proxied-service.ts";

let service: ProxiedService;
beforeAll(async () => {
  service = await ProxiedService.start();
});
afterAll(() => service.end());

/** Handles the first requests of a kind in this way, and forwards all others. */
function first(count: number, verb: string, resource: string, handling: Handling) {
  let handled = 0;
  return {
    handle: (request: ProxiedRequest): Handling | undefined =>
      request.verb === verb && request.resource === resource && handled++ < count ? handling : undefined,
    isOver: () => handled >= count,
  };
}

const WRITES = [
  ["patch", "deployments"],
  ["patch", "pipescalings/status"],
  ["update", "leases"],
  ["create", "events"],
] as const;

describe("a call to the API server", () => {
  it.each(WRITES)("can succeed and lose its response: %s %s", (verb, resource) =>
    service.rescaleUnder(first(1, verb, resource, { type: "lose-response" })),
  );

  it.each(WRITES.slice(0, 2))("can be lost: %s %s", (verb, resource) =>
    service.rescaleUnder(first(4, verb, resource, { type: "drop" })),
  );

  it.each(WRITES.slice(0, 2))("can get an incomplete response: %s %s", (verb, resource) =>
    service.rescaleUnder(first(2, verb, resource, { type: "pass", cutAfterBytes: 100 })),
  );

  it.each(WRITES.slice(0, 2))("can get one conflict after the other: %s %s", (verb, resource) =>
    service.rescaleUnder(first(5, verb, resource, errorResponse(409, "Conflict"))),
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

  it("is not repeated after 429 before the time in Retry-After", async () => {
    const { proxy, environment } = service;
    const begun = proxy.requests.length;
    const responses = proxy.count("patch", "deployments", "respond");
    const busy = first(
      1,
      "patch",
      "deployments",
      errorResponse(429, "TooManyRequests", { "retry-after": "2" }),
    );
    const isWrite = ({ url }: ProxiedRequest) => !url.includes("dryRun");
    await service.rescaleUnder({
      handle: (request) => (isWrite(request) ? busy.handle(request) : undefined),
      isOver: busy.isOver,
      // A change of the service must not repeat it earlier.
      meanwhile: async () => {
        await waitFor(() => proxy.count("patch", "deployments", "respond") > responses, {
          what: "the error",
        });
        await environment.patchPipe("pipe-b", {
          metadata: { annotations: { note: `${performance.now()}` } },
        });
      },
    });
    const writes = proxy.requests
      .slice(begun)
      .filter(
        (request) => request.verb === "patch" && request.resource === "deployments" && isWrite(request),
      );
    // Another pipe may be resized first.
    const [refused] = writes;
    const next = writes.find((request) => request !== refused && request.url === refused?.url);
    expect(refused?.handling).toBe("respond");
    expect((next?.at ?? 0) - (refused?.at ?? 0)).toBeGreaterThanOrEqual(2000);
  });

  it("can lose its response when it creates the PipeScaling again", async () => {
    const { proxy, environment } = service;
    const before = await environment.scaling();
    const lost = first(1, "create", "pipescalings", { type: "lose-response" });
    proxy.handle = lost.handle;
    await environment.client.json({
      method: "DELETE",
      path: objectPath(PIPE_SCALINGS, environment.pipes, environment.serviceId),
    });
    await waitFor(lost.isOver, { what: "the fault to have an effect" });
    const after = await environment.waitForCondition("Ready", "True");
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    expect(after.spec).toEqual(before.spec);
  });
});
