import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { objectPath } from "../../../src/kube/paths.ts";
import { type Asked, type Fate, refusal } from "./faulty-proxy.ts";
import { ProxiedService } from "./proxied-service.ts";

let service: ProxiedService;
beforeAll(async () => {
  service = await ProxiedService.start();
});
afterAll(() => service.end());

/** The first few requests of a kind meet this fate, and all others pass. */
function first(count: number, verb: string, resource: string, fate: Fate) {
  let met = 0;
  return {
    fate: (asked: Asked): Fate | undefined =>
      asked.verb === verb && asked.resource === resource && met++ < count ? fate : undefined,
    isOver: () => met >= count,
  };
}

const WRITES = [
  ["patch", "deployments"],
  ["patch", "pipescalings/status"],
  ["update", "leases"],
  ["create", "events"],
] as const;

describe("a call to the API server", () => {
  it.each(WRITES)("that is done, and its response lost: %s %s", (verb, resource) =>
    service.rescaleUnder(first(1, verb, resource, { type: "lose-response" })),
  );

  it.each(WRITES.slice(0, 2))("that never gets there: %s %s", (verb, resource) =>
    service.rescaleUnder(first(4, verb, resource, { type: "drop" })),
  );

  it.each(WRITES.slice(0, 2))("whose response is cut short: %s %s", (verb, resource) =>
    service.rescaleUnder(first(2, verb, resource, { type: "pass", cutAfterBytes: 100 })),
  );

  it.each(WRITES.slice(0, 2))("that meets one conflict after the other: %s %s", (verb, resource) =>
    service.rescaleUnder(first(5, verb, resource, refusal(409, "Conflict"))),
  );

  it("times out without a response, and the controller continues", async () => {
    await service.rescaleUnder(first(1, "patch", "deployments", { type: "hold" }));
  });

  it("may fail with 500 for a while, whatever its kind", async () => {
    let refused = 0;
    await service.rescaleUnder({
      fate: ({ resource }) => {
        if (resource === "leases") refused += 1;
        return refusal(500, "InternalError");
      },
      isOfWatches: true,
      isOver: () => refused >= 2,
    });
  });

  it("is not repeated after 429 before the time in Retry-After", async () => {
    const { proxy, environment } = service;
    const begun = proxy.seen.length;
    const answered = proxy.count("patch", "deployments", "respond");
    const busy = first(1, "patch", "deployments", refusal(429, "TooManyRequests", { "retry-after": "2" }));
    const isWrite = ({ url }: Asked) => !url.includes("dryRun");
    await service.rescaleUnder({
      fate: (asked) => (isWrite(asked) ? busy.fate(asked) : undefined),
      isOver: busy.isOver,
      // An event of the service is no reason to repeat it earlier.
      meanwhile: async () => {
        await waitFor(() => proxy.count("patch", "deployments", "respond") > answered, {
          what: "the refusal",
        });
        await environment.patchPipe("pipe-b", {
          metadata: { annotations: { note: `${performance.now()}` } },
        });
      },
    });
    const writes = proxy.seen
      .slice(begun)
      .filter((asked) => asked.verb === "patch" && asked.resource === "deployments" && isWrite(asked));
    // Another pipe may go first meanwhile.
    const [refused] = writes;
    const next = writes.find((asked) => asked !== refused && asked.url === refused?.url);
    expect(refused?.fate).toBe("respond");
    expect((next?.at ?? 0) - (refused?.at ?? 0)).toBeGreaterThanOrEqual(2000);
  });

  it("may lose its response when it creates the PipeScaling again", async () => {
    const { proxy, environment } = service;
    const before = await environment.scaling();
    const lost = first(1, "create", "pipescalings", { type: "lose-response" });
    proxy.fate = lost.fate;
    await environment.client.json({
      method: "DELETE",
      path: objectPath(PIPE_SCALINGS, environment.pipes, environment.serviceId),
    });
    await waitFor(lost.isOver, { what: "the fault to show" });
    const after = await environment.waitForCondition("Ready", "True");
    expect(after.metadata.uid).not.toBe(before.metadata.uid);
    expect(after.spec).toEqual(before.spec);
  });
});
