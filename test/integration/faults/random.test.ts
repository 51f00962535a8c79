import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, it } from "vitest";
import { type Cluster, startCluster } from "../../cluster/cluster.ts";
import { environment } from "../../cluster/environment.ts";
import { killApiServer, REVIVABLE } from "../../cluster/outage.ts";
import { silentProgress } from "../../cluster/progress.ts";
import { TcpProxy } from "../../cluster/tcp-proxy.ts";
import { waitFor } from "../../cluster/wait.ts";
import { randomOf, seed } from "../../gen/random.ts";
import { AdmissionWebhook } from "../../support/admission-webhook.ts";
import { World } from "../world.ts";
import { AdmissionFaults } from "./admission-faults.ts";
import { controllerKubeconfig, KeptController } from "./controller-process.ts";
import { Invariants } from "./invariants.ts";
import { ObjectWriters } from "./object-writers.ts";
import { Operations } from "./operations.ts";
import { ServiceUnderTest } from "./service-under-test.ts";

const STEPS = Number(environment["PIPE_SCALING_TEST_STEPS"] ?? 150);
/** The most that passes between two steps. */
const PAUSE_MS = 500;
const HOUR_MS = 3_600_000;

let cluster: Cluster;
let world: World;
let invariants: Invariants;
let proxy: TcpProxy;
let controller: KeptController;
let webhook: AdmissionWebhook | undefined;
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
});
afterEach(async () => {
  await controller.end();
  await webhook?.end();
  proxy.close();
  await invariants.close();
  await world.end();
});

it(`holds through ${STEPS} steps of people and faults at random (seed ${seed})`, {
  timeout: 120_000 + 1500 * STEPS,
}, async () => {
  const random = randomOf(seed);
  // Each process has another clock: right, an hour ahead, or an hour behind.
  const nextClock = randomOf(seed + 1);
  controller = new KeptController(world, await controllerKubeconfig(world, proxy.port), () => ({
    clockErrorMs: Math.floor(nextClock() * 3 - 1) * HOUR_MS,
  }));
  await world.createPipe({ name: "idle", cores: 1, replicas: 0 });
  webhook = await AdmissionWebhook.start(world, "MutatingWebhookConfiguration", "idle");
  const service = new ServiceUnderTest(world, invariants, random);
  const operations = new Operations(service, [
    new ObjectWriters(service),
    new AdmissionFaults(service, webhook),
  ]);

  invariants.accept(1);
  await operations.addPipes(4);
  await world.waitForCondition("Ready", "True");
  try {
    for (let step = 0; step < STEPS; step++) {
      await operations.any();
      await anyFault(random);
      await delay(random() * PAUSE_MS);
    }
    const cores = 9;
    await waitFor(() => operations.conclude(cores).then(() => true), { what: "the last request" });
    await invariants.settled(cores, { quietMs: 3000 });
    await invariants.end();
  } catch (error) {
    const files = keep({ operations: operations.log.join("\n") });
    throw new Error(`${String(error)}\nWhat was done and seen: ${files}`, { cause: error });
  }
});

/** Keeps what happened for people who look for the cause. Returns the folder. */
function keep(texts: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), `pipe-scaling-seed-${seed}-`));
  const all = { ...texts, history: invariants.history, controller: controller.output };
  for (const [name, text] of Object.entries(all)) writeFileSync(join(folder, `${name}.log`), text);
  return folder;
}

async function anyFault(random: () => number): Promise<void> {
  const faults: readonly [share: number, fault: () => Promise<void>][] = [
    [0.08, () => controller.current.kill()],
    [0.05, () => stopped(random() * 2000)],
    [0.05, async () => proxy.cut()],
    [0.04, () => frozen(random() * 2000)],
    [0.02, killedApiServer],
  ];
  let dice = random();
  for (const [share, fault] of faults) {
    if (dice < share) return fault();
    dice -= share;
  }
}

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
