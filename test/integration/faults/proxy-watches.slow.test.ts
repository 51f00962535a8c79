import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { collectionPath } from "../../../src/kube/paths.ts";
import type { List } from "../../../src/kube/protobuf/envelope.ts";
import { errorResponse, type Handling, type ProxiedRequest } from "./faulty-proxy.ts";
import { ProxiedService } from "./proxied-service.ts";
import { GONE, watches } from "./proxy-faults.ts";

let service: ProxiedService;
beforeAll(async () => {
  service = await ProxiedService.start();
});
beforeEach(() => service.restartController());
afterAll(() => service.end());

describe("a rescale", () => {
  const isOfWatches = true;

  it.each([
    ["410 Gone", errorResponse(410, "Expired")],
    ["200 with a 410 in an event", GONE],
    ["429", errorResponse(429, "TooManyRequests", { "retry-after": "1" })],
    ["500", errorResponse(500, "InternalError")],
  ])("completes with watches that get the response %s", (_, handling) => {
    const { proxy } = service;
    const before = proxy.count("watch", "deployments", "respond");
    return service.rescaleUnder({
      isOfWatches,
      handle: watches(handling),
      isOver: () => proxy.count("watch", "deployments", "respond") >= before + 2,
    });
  });

  it("completes with watches that get no response at first", () => {
    const { proxy } = service;
    const before = proxy.count("watch", "deployments", "hold");
    return service.rescaleUnder({
      isOfWatches,
      handle: watches({ type: "hold" }),
      // The second watch starts after the timeout of the first.
      isOver: () => proxy.count("watch", "deployments", "hold") >= before + 2,
    });
  });

  it.each([
    ["Deployments", "deployments"],
    ["PipeScalings", "pipescalings"],
  ])("completes with watches that deliver only %s a second late", (_, resource) =>
    service.rescaleUnder({ isOfWatches, handle: watches({ type: "pass", lateMs: 1000 }, resource) }),
  );

  it("completes before a watch delivers that a pipe was deleted and created again", async () => {
    const { proxy, environment } = service;
    // Longer than the fault lasts.
    const handle = watches({ type: "pass", lateMs: 60_000 }, "deployments");
    const open = proxy.count("watch", "deployments", "pass");
    proxy.handle = handle;
    proxy.cutWatches("deployments");
    await waitFor(() => proxy.count("watch", "deployments", "pass") > open, { what: "the watch to be late" });
    const { spec } = await environment.pipe("pipe-a");
    const cores = Number(spec.template.spec.containers[0]?.resources?.requests?.["cpu"]);
    await kubectl(environment.cluster, ["delete", "deployment", "pipe-a", "-n", environment.pipes]);
    await environment.createPipe({ name: "pipe-a", cores });
    const begun = proxy.requests.length;
    await service.rescaleUnder({
      isOfWatches,
      handle,
      // The patch is for the deleted pipe.
      isOver: () =>
        proxy.requests
          .slice(begun)
          .some(({ verb, url, code = 0 }) => verb === "patch" && url.includes("pipe-a") && code >= 400),
    });
  });

  it("completes with slow watches and slow streamed lists", () => {
    const { proxy } = service;
    const isList = ({ url }: ProxiedRequest) => url.includes("sendInitialEvents");
    const lists = () =>
      proxy.requests.filter((request) => isList(request) && request.resource === "deployments").length;
    const before = lists();
    return service.rescaleUnder({
      isOfWatches,
      handle: (request) => {
        if (isList(request)) return { type: "pass", lateMs: 1000 };
        return watches(lists() > before ? { type: "pass" } : GONE, "deployments")(request);
      },
      isOver: () => lists() > before,
    });
  });
});

describe("an initial list", () => {
  /** Without objects, so that a list can be made up. */
  const AUTOSCALERS = { apiVersion: "autoscaling/v2", plural: "horizontalpodautoscalers" };

  it("starts again after a growing pause if it ends early, is reset, or is followed by 410", async () => {
    const { proxy, environment } = service;
    const { metadata } = await environment.client.json<List<object>>({
      path: collectionPath(AUTOSCALERS, environment.pipes),
    });
    const annotations = { "k8s.io/initial-events-end": "true" };
    const end = { type: "BOOKMARK", object: { metadata: { ...metadata, annotations } } };
    const handlings = new Map<string, Handling>([
      ["deployments", { type: "respond", status: 200, body: "" }],
      ["pipescalings", { type: "drop" }],
      [AUTOSCALERS.plural, { ...GONE, body: `${JSON.stringify(end)}\n${GONE.body}` }],
    ]);
    const begun = proxy.requests.length;
    const lists = (resource: string) =>
      proxy.requests
        .slice(begun)
        .filter((request) => request.resource === resource && request.url.includes("sendInitialEvents"));
    proxy.handle = ({ verb, resource }) => (verb === "watch" ? handlings.get(resource) : undefined);
    const stop = await service.startAnotherController();
    try {
      for (const resource of handlings.keys()) {
        await waitFor(() => lists(resource).length >= 4, { what: `four lists of ${resource}` });
        const [first = 0, second = 0, , fourth = 0] = lists(resource).map(({ at }) => at);
        expect(second - first).toBeGreaterThan(700);
        // Another watch that recovers cuts short at most every second pause.
        expect(fourth - second).toBeGreaterThan(1500);
      }
    } finally {
      proxy.handle = () => undefined;
      await stop();
    }
  });
});
