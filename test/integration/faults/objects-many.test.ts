import { afterAll, beforeAll, expect, it } from "vitest";
import { type Cluster, startCluster } from "../../cluster/cluster.ts";
import { silentProgress } from "../../cluster/progress.ts";
import { World } from "../world.ts";
import { Invariants } from "./invariants.ts";

let cluster: Cluster;
let world: World;
let invariants: Invariants;
beforeAll(async () => {
  const clientLimits = { "kube-api-qps": "1000", "kube-api-burst": "2000" };
  const syncs = { "concurrent-deployment-syncs": "50", "concurrent-replicaset-syncs": "50" };
  cluster = await startCluster({
    progress: silentProgress,
    podStartMs: 50,
    nodeSize: { cpus: 10_000, memoryGib: 100_000 },
    componentArgs: {
      "kube-controller-manager": { ...clientLimits, ...syncs },
      "kube-scheduler": clientLimits,
    },
  });
  world = await World.create("basic", cluster);
  invariants = await Invariants.observe(world);
});
afterAll(async () => {
  await world?.end();
  await invariants?.close();
  await cluster?.stop();
});

it("a service of 200 pipes is rescaled one first, then a quarter at a time", {
  timeout: 360_000,
}, async () => {
  const names = Array.from({ length: 200 }, (_, index) => `pipe-${index}`);
  invariants.accept(1);
  await world.startController();
  for (let at = 0; at < names.length; at += 20)
    await Promise.all(names.slice(at, at + 20).map((name) => world.createPipe({ name, cores: 1 })));
  await invariants.settled(1, { quietMs: 0, timeoutMs: 150_000 });
  invariants.accept(2);
  await world.askFor(2);
  await invariants.settled(2, { quietMs: 1000, timeoutMs: 150_000 });
  await invariants.end();
  expect((await world.scaling()).status?.pipes?.summary).toBe("200/200");
});
