import { startSecondApiServer } from "@pipe-scaling/local-cluster/second-api-server";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { ControllerProcess, controllerKubeconfig } from "./controller-process.ts";
import { FaultyProxy } from "./faulty-proxy.ts";
import { it as base } from "./fixtures.ts";

/** A cluster of its own, with a second API server. */
const it = base
  .override("clusterOptions", { scope: "file" }, {})
  .extend("second", { scope: "file" }, async ({ cluster }, { onCleanup }) => {
    const second = await startSecondApiServer(cluster);
    onCleanup(() => second.etcdLink.close());
    return second;
  })
  .extend("proxy", async ({ cluster }, { onCleanup }) => {
    const proxy = await FaultyProxy.start(cluster);
    onCleanup(() => proxy.stop());
    return proxy;
  })
  .extend("start", ({ environment }, { onCleanup }) => {
    const running: ControllerProcess[] = [];
    onCleanup(async () => {
      await Promise.all(running.map((controller) => controller.kill()));
    });
    return (kubeconfig: string, identity: string): ControllerProcess => {
      const controller = new ControllerProcess(environment, kubeconfig, identity);
      running.push(controller);
      return controller;
    };
  });

it.for<[knows: string, stale: readonly string[], tried: string]>([
  [
    "knows neither the requested size nor the sizes of the pipes",
    ["pipescalings", "deployments"],
    "deployments",
  ],
  ["knows the sizes of the pipes, but not the requested size", ["pipescalings"], "pipescalings/status"],
])(
  "a leader that %s, because its API server is stale, does not return pipes to an earlier size",
  {
    timeout: 300_000,
  },
  async (
    [_, stale, tried],
    { environment, invariants, requestSize, second, proxy, start, onTestFinished },
  ) => {
    onTestFinished(() => second.etcdLink.thaw());
    const server = `https://127.0.0.1:${second.port}`;
    const kubeconfig = await controllerKubeconfig(environment);
    const current = start(kubeconfig, "current");
    await current.waitForLog('"leading"');
    invariants.accept(1);
    for (const name of ["pipe-a", "pipe-b", "pipe-c"]) await environment.createPipe({ name, cores: 1 });
    await invariants.settled(1, { quietMs: 0 });
    // The default of the tier applies from now on.
    await environment.requestSize(null);
    await invariants.settled(1, { quietMs: 0 });
    proxy.serverFor = ({ verb, resource }) =>
      verb === "watch" && stale.includes(resource) ? server : undefined;
    const behind = start(proxy.kubeconfig(kubeconfig), "behind");
    await behind.isReady();

    second.etcdLink.freeze();
    await requestSize(4);
    await invariants.settled(4, { quietMs: 0 });
    current.signal("SIGTERM");
    await current.ended;
    await behind.waitForLog('"leading"');
    // The second controller does not know the requested size, so it applies the default of the tier, which changes here.
    await environment.setTier("scale");
    await waitFor(() => proxy.count("patch", tried, "pass") > 0, {
      what: "an attempt of the second controller",
    });

    second.etcdLink.thaw();
    await waitFor(async () => (await environment.scaling()).status?.tier === "scale", {
      what: "the tier in the status",
    });
    await invariants.settled(4, { quietMs: 1000 });
    await invariants.end();
  },
);
