import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { errorResponse } from "./faulty-proxy.ts";
import { ProxiedService } from "./proxied-service.ts";
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
