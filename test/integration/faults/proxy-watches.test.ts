import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { API_VERSION, KIND, PIPE_SCALINGS } from "../../../src/crd/names.ts";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { resourcesOf } from "../../support/test-environment.ts";
import { errorResponse } from "./faulty-proxy.ts";
import { PIPES, ProxiedService } from "./proxied-service.ts";
import { watches } from "./proxy-faults.ts";

let service: ProxiedService;
beforeAll(async () => {
  service = await ProxiedService.start();
});
beforeEach(() => service.restartController());
afterAll(() => service.end());

describe("a rescale", () => {
  const isOfWatches = true;

  it("completes with watches that are cut every few hundred milliseconds", () =>
    service.rescaleUnder({ isOfWatches, handle: watches({ type: "pass", cutAfterMs: 300 }) }));

  // Enough for a list of the three Deployments, which otherwise would never be complete.
  it("completes with watches that are cut in the middle of an event", () =>
    service.rescaleUnder({ isOfWatches, handle: watches({ type: "pass", cutAfterBytes: 60_000 }) }));

  it("completes with watches that miss the deletion of a pipe and have to list again", async () => {
    const { proxy, environment } = service;
    await environment.createPipe({ name: "pipe-z", cores: 1 });
    const summary = async () => (await environment.scaling()).status?.pipes?.summary;
    await waitFor(async () => (await summary()) === "4/4", {
      what: "the new pipe to have the size of the others",
    });
    let isGone = false;
    const answered = proxy.count("watch", "deployments", "respond");
    await service.rescaleUnder({
      isOfWatches,
      handle: ({ verb, resource }) => {
        if (resource !== "deployments" || verb === "patch") return undefined;
        if (!isGone) return { type: "drop" };
        return verb === "watch" ? watches(errorResponse(410, "Expired"))({ verb, resource }) : undefined;
      },
      meanwhile: async () => {
        await environment.client.json({
          method: "DELETE",
          path: objectPath(DEPLOYMENTS, environment.pipes, "pipe-z"),
        });
        isGone = true;
      },
      isOver: () => proxy.count("watch", "deployments", "respond") > answered,
    });
    expect(await summary()).toBe("3/3");
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
