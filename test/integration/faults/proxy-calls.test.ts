import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { objectPath } from "../../../src/kube/paths.ts";
import { errorResponse, type ProxiedRequest } from "./faulty-proxy.ts";
import { ProxiedService } from "./proxied-service.ts";
import { first } from "./proxy-faults.ts";

let service: ProxiedService;
beforeAll(async () => {
  service = await ProxiedService.start();
});
afterAll(() => service.end());

describe("a call to the API server", () => {
  it("can succeed and lose its response", () =>
    service.rescaleUnder(first(1, "patch", "deployments", { type: "lose-response" })));

  it("can get one conflict after the other", () =>
    service.rescaleUnder(first(5, "patch", "deployments", errorResponse(409, "Conflict"))));

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
