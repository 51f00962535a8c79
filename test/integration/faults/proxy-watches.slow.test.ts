import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { collectionPath, objectPath } from "../../../src/kube/paths.ts";
import type { List } from "../../../src/kube/protobuf/envelope.ts";
import { resourcesOf } from "../../support/test-environment.ts";
import { errorResponse, type Handling, type ProxiedRequest } from "./faulty-proxy.ts";
import { PIPES, ProxiedService } from "./proxied-service.ts";
import { GONE, watches } from "./proxy-faults.ts";

let service: ProxiedService;
beforeAll(async () => {
  service = await ProxiedService.start();
});
beforeEach(() => service.restartController());
afterAll(() => service.end());

describe("a rescale", () => {
  const isOfWatches = true;

  // Enough for a list of the three Deployments, which otherwise would never be complete.
  it("completes with watches that are cut in the middle of an event", () =>
    service.rescaleUnder({ isOfWatches, handle: watches({ type: "pass", cutAfterBytes: 60_000 }) }));

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

describe("a PipeScaling that its owner creates and deletes again while no watch works", () => {
  it("is created with the size of the pipes, so that none is resized", async () => {
    const { proxy, environment } = service;
    const { client, serviceId, pipes: namespace } = environment;
    const path = objectPath(PIPE_SCALINGS, namespace, serviceId);
    const sizes = async () =>
      (await Promise.all(PIPES.map((name) => environment.pipe(name)))).map(resourcesOf);
    // Longer than all that the owner does below.
    await service.restartController({ timeouts: { recreateMs: 20_000 } });
    const before = await sizes();
    const refuse = errorResponse(500, "InternalError");
    proxy.handle = ({ verb, resource }) =>
      verb === "patch" && resource === "deployments" ? refuse : undefined;
    await environment.requestSize(8);
    await environment.waitForCondition("Ready", "False");

    await client.json({ method: "DELETE", path });
    await waitFor(async () => !/^pipe_scaling_services\{.* [1-9]/mu.test(await environment.scrape()), {
      what: "the controller to see the deletion",
    });
    const refused = proxy.count("watch", "pipescalings", "respond");
    proxy.handle = ({ verb, resource }) =>
      verb === "watch" && resource === "pipescalings" ? refuse : undefined;
    proxy.cutWatches("pipescalings");
    await waitFor(() => proxy.count("watch", "pipescalings", "respond") > refused, {
      what: "no watch to work",
    });
    await environment.create(PIPE_SCALINGS, namespace, {
      apiVersion: API_VERSION,
      kind: KIND,
      metadata: { name: serviceId },
      spec: { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
    });
    await client.json({ method: "DELETE", path });
    proxy.handle = () => undefined;

    const created = await environment.waitForCondition("Ready", "True");
    const cores = Number.parseInt(before[0] ?? "", 10);
    expect(created.spec).toEqual({ replicaCpuMillicores: cores * 1000, replicaMemoryGb: cores * 4 });
    expect(await sizes()).toEqual(before);
  });
});
