import { afterAll, afterEach, beforeAll, beforeEach, it } from "vitest";
import { type Cluster, startCluster } from "../../cluster/cluster.ts";
import { silentProgress } from "../../cluster/progress.ts";
import { type SecondApiServer, startSecondApiServer } from "../../cluster/second-api-server.ts";
import { waitFor } from "../../cluster/wait.ts";
import { World } from "../world.ts";
import { ControllerProcess, controllerKubeconfig } from "./controller-process.ts";
import { FaultyProxy } from "./faulty-proxy.ts";
import { Invariants } from "./invariants.ts";

let cluster: Cluster;
let second: SecondApiServer;
let world: World;
let proxy: FaultyProxy;
let invariants: Invariants;
let running: ControllerProcess[] = [];
beforeAll(async () => {
  cluster = await startCluster({ progress: silentProgress });
  second = await startSecondApiServer(cluster);
});
afterAll(async () => {
  second?.etcdLink.close();
  await cluster?.stop();
});
beforeEach(async () => {
  world = await World.create("basic", cluster);
  proxy = await FaultyProxy.start(cluster);
  invariants = await Invariants.observe(world);
});
afterEach(async () => {
  second.etcdLink.thaw();
  await Promise.all(running.map((controller) => controller.kill()));
  running = [];
  await invariants.close();
  await proxy.stop();
  await world.end();
});

function start(kubeconfig: string, identity: string): ControllerProcess {
  const controller = new ControllerProcess(world, kubeconfig, identity);
  running.push(controller);
  return controller;
}

it.each([
  ["knows neither what is asked for nor what the pipes have", ["pipescalings", "deployments"], "deployments"],
  ["knows what the pipes have, but not what was asked for", ["pipescalings"], "pipescalings/status"],
])(
  "who leads and %s, by a server that is behind, moves no pipe back",
  {
    timeout: 120_000,
  },
  async (_what, stale, tried) => {
    const server = `https://127.0.0.1:${second.port}`;
    const kubeconfig = await controllerKubeconfig(world);
    const current = start(kubeconfig, "current");
    await current.says('"leading"');
    invariants.accept(1);
    for (const name of ["pipe-a", "pipe-b", "pipe-c"]) await world.createPipe({ name, cores: 1 });
    await invariants.settled(1, { quietMs: 0 });
    proxy.elsewhere = ({ verb, resource }) =>
      verb === "watch" && stale.includes(resource) ? server : undefined;
    const behind = start(proxy.kubeconfig(kubeconfig), "behind");
    await behind.isReady();

    second.etcdLink.freeze();
    invariants.accept(4);
    await world.askFor(4);
    await invariants.settled(4, { quietMs: 0 });
    current.signal("SIGTERM");
    await current.ended;
    await behind.says('"leading"');
    // For all that the second knows the size is left to the tier, whose default this changes.
    await world.setTier("scale");
    await waitFor(() => proxy.count("patch", tried, "pass") > 0, { what: "the second to try" });

    second.etcdLink.thaw();
    await waitFor(async () => (await world.scaling()).status?.tier === "scale", {
      what: "the tier to be told",
    });
    await invariants.settled(4, { quietMs: 1000 });
    await invariants.end();
  },
);
