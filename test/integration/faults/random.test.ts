import { setTimeout as delay } from "node:timers/promises";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { killApiServer, REVIVABLE } from "@pipe-scaling/local-cluster/outage";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, afterEach, beforeAll, beforeEach, it } from "vitest";
import { randomOf, seed } from "../../gen/random.ts";
import { World } from "../world.ts";
import { controllerKubeconfig, KeptController } from "./controller-process.ts";
import { Invariants } from "./invariants.ts";
import { Operations } from "./operations.ts";

const STEPS = 200;
/** The most that passes between two steps. */
const PAUSE_MS = 500;

let cluster: Cluster;
let world: World;
let invariants: Invariants;
let proxy: TcpProxy;
let controller: KeptController;
beforeAll(async () => {
  cluster = await startCluster({
    progress: silentProgress,
    podStartMs: 100,
    podStartJitterMs: 200,
    componentArgs: REVIVABLE,
  });
});
afterAll(() => cluster?.stop());
beforeEach(async () => {
  world = await World.create("basic", cluster);
  invariants = await Invariants.observe(world);
  proxy = await TcpProxy.listen(Number(new URL(cluster.server).port));
  controller = new KeptController(world, await controllerKubeconfig(world, proxy.port));
});
afterEach(async () => {
  await controller.end();
  proxy.close();
  await invariants.close();
  await world.end();
});

it(`holds through ${STEPS} steps of people and faults at random (seed ${seed})`, {
  timeout: 480_000,
}, async () => {
  const random = randomOf(seed);
  const operations = new Operations(world, invariants, random);
  const faults: readonly [share: number, fault: () => Promise<void>][] = [
    [0.08, () => controller.current.kill()],
    [0.05, () => stopped(random() * 2000)],
    [0.05, async () => proxy.cut()],
    [0.04, () => frozen(random() * 2000)],
    [0.02, killedApiServer],
  ];
  const anyFault = async () => {
    let dice = random();
    for (const [share, fault] of faults) {
      if (dice < share) return fault();
      dice -= share;
    }
  };

  invariants.accept(1);
  await operations.addPipes(4);
  await world.waitForCondition("Ready", "True");
  for (let step = 0; step < STEPS; step++) {
    await operations.any();
    await anyFault();
    await delay(random() * PAUSE_MS);
  }

  const cores = 9;
  await waitFor(() => operations.conclude(cores).then(() => true), { what: "the last request" });
  await invariants.settled(cores, { quietMs: 3000 });
  await invariants.end();
});

/** The controller stands still for a while. */
async function stopped(ms: number): Promise<void> {
  const { current } = controller;
  current.signal("SIGSTOP");
  await delay(ms);
  current.signal("SIGCONT");
}

/** Its connections stay open, and nothing gets through. */
async function frozen(ms: number): Promise<void> {
  proxy.freeze();
  await delay(ms);
  proxy.thaw();
}

async function killedApiServer(): Promise<void> {
  await killApiServer(cluster);
  await cluster.revive();
}
