import { kubectl } from "@pipe-scaling/local-cluster/kubectl";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { DEPLOYMENTS, objectPath } from "../../../src/kube/paths.ts";
import { type Asked, type Fate, refusal } from "./faulty-proxy.ts";
import { ProxiedService } from "./proxied-service.ts";

let service: ProxiedService;
beforeAll(async () => {
  service = await ProxiedService.start();
});
beforeEach(() => service.restartController());
afterAll(() => service.end());

/** All watches, or those of one kind. */
function watches(fate: Fate, resource?: string) {
  return ({ verb, ...asked }: Asked): Fate | undefined =>
    verb === "watch" && (resource ?? asked.resource) === asked.resource ? fate : undefined;
}

/** As the API server tells it within a watch. */
const GONE: Fate = {
  type: "respond",
  status: 200,
  body: `${JSON.stringify({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired" } })}\n`,
};

describe("a rescale", () => {
  const isOfWatches = true;

  it("completes with watches that are cut every few hundred milliseconds", () =>
    service.rescaleUnder({ isOfWatches, fate: watches({ type: "pass", cutAfterMs: 300 }) }));

  // Enough for the three Deployments at once: a list that never arrives whole could not be told from an outage.
  it("completes with watches that are cut in the middle of an event", () =>
    service.rescaleUnder({ isOfWatches, fate: watches({ type: "pass", cutAfterBytes: 60_000 }) }));

  it("completes with watches that get no response at first", () => {
    const { proxy } = service;
    const before = proxy.count("watch", "deployments", "hold");
    return service.rescaleUnder({
      isOfWatches,
      fate: watches({ type: "hold" }),
      // The second one is asked for when the first was given up.
      isOver: () => proxy.count("watch", "deployments", "hold") >= before + 2,
    });
  });

  it.each([
    ["410 Gone", refusal(410, "Expired")],
    ["200 and an event that says 410", GONE],
    ["429", refusal(429, "TooManyRequests", { "retry-after": "1" })],
    ["500", refusal(500, "InternalError")],
  ])("completes with watches that get the response %s", (_, fate) => {
    const { proxy } = service;
    const before = proxy.count("watch", "deployments", "respond");
    return service.rescaleUnder({
      isOfWatches,
      fate: watches(fate),
      isOver: () => proxy.count("watch", "deployments", "respond") >= before + 2,
    });
  });

  it.each([
    ["Deployments", "deployments"],
    ["PipeScalings", "pipescalings"],
  ])("completes with watches that deliver %s a second late and everything else at once", (_, resource) =>
    service.rescaleUnder({ isOfWatches, fate: watches({ type: "pass", lateMs: 1000 }, resource) }),
  );

  it("completes before a watch delivers that a pipe was deleted and created again", async () => {
    const { proxy, environment } = service;
    // Not before the fault is over.
    const fate = watches({ type: "pass", lateMs: 60_000 }, "deployments");
    const open = proxy.count("watch", "deployments", "pass");
    proxy.fate = fate;
    proxy.cutWatches("deployments");
    await waitFor(() => proxy.count("watch", "deployments", "pass") > open, { what: "the watch to be late" });
    const { spec } = await environment.pipe("pipe-a");
    const cores = Number(spec.template.spec.containers[0]?.resources?.requests?.["cpu"]);
    await kubectl(environment.cluster, ["delete", "deployment", "pipe-a", "-n", environment.pipes]);
    await environment.createPipe({ name: "pipe-a", cores });
    const begun = proxy.seen.length;
    await service.rescaleUnder({
      isOfWatches,
      fate,
      // The patch is for the pipe that was.
      isOver: () =>
        proxy.seen
          .slice(begun)
          .some(({ verb, url, code = 0 }) => verb === "patch" && url.includes("pipe-a") && code >= 400),
    });
  });

  it("completes with slow watches and slow streamed lists", () => {
    const { proxy } = service;
    const isList = ({ url }: Asked) => url.includes("sendInitialEvents");
    const lists = () =>
      proxy.seen.filter((asked) => isList(asked) && asked.resource === "deployments").length;
    const before = lists();
    return service.rescaleUnder({
      isOfWatches,
      fate: (asked) => {
        if (isList(asked)) return { type: "pass", lateMs: 1000 };
        return watches(lists() > before ? { type: "pass" } : GONE, "deployments")(asked);
      },
      isOver: () => lists() > before,
    });
  });

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
      fate: ({ verb, resource }) => {
        if (resource !== "deployments" || verb === "patch") return undefined;
        if (!isGone) return { type: "drop" };
        return verb === "watch"
          ? watches(refusal(410, "Expired"))({ verb, resource, url: "", at: 0 })
          : undefined;
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
