import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { ROOMY_NODE, WITHOUT_CLIENT_LIMITS } from "@pipe-scaling/local-cluster/capacity";
import { environment as env } from "@pipe-scaling/local-cluster/environment";
import { REVIVABLE } from "@pipe-scaling/local-cluster/outage";
import { openPaths } from "@pipe-scaling/local-cluster/paths";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { TcpProxy } from "@pipe-scaling/local-cluster/tcp-proxy";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, afterEach, beforeAll, beforeEach, it } from "vitest";
import { AdmissionWebhook } from "../../support/servers/admission-webhook.ts";
import { TestEnvironment } from "../../support/test-environment.ts";
import { restrictController } from "../in-place-account.ts";
import { AdmissionFaults } from "./admission-faults.ts";
import { controllerKubeconfig, RestartingController } from "./controller-process.ts";
import { InPlaceOperations } from "./in-place-operations.ts";
import { Invariants } from "./invariants.ts";
import { ObjectWriters } from "./object-writers.ts";
import { Operations } from "./operations.ts";
import { RandomFaults } from "./random-faults.ts";
import { randomOf, seed } from "./random-numbers.ts";
import { ServiceUnderTest } from "./service-under-test.ts";

const STEPS = Number(env["PIPE_SCALING_TEST_STEPS"] ?? 100);
/** The start and the end of the test with many namespaces take longer. */
const STEPS_OF_MANY = Math.ceil(STEPS / 3);
const OTHER_NAMESPACES = 39;
/** Maximum time between two steps. */
const PAUSE_MS = 500;
const LAST_CORES = 9;
const QUIET_MS = 3000;
const HOUR_MS = 3_600_000;
const MANAGER = "kube-controller-manager";

let cluster: Cluster;
let environment: TestEnvironment;
let proxy: TcpProxy;
let invariants: Invariants | undefined;
let controller: RestartingController | undefined;
let webhook: AdmissionWebhook | undefined;
beforeAll(async () => {
  // A cluster of its own, because the faults kill its components.
  cluster = await startCluster({
    progress: silentProgress,
    podStartMs: 100,
    podStartJitterMs: 200,
    componentArgs: {
      ...REVIVABLE,
      ...WITHOUT_CLIENT_LIMITS,
      [MANAGER]: { ...REVIVABLE[MANAGER], ...WITHOUT_CLIENT_LIMITS[MANAGER] },
    },
    nodeSize: ROOMY_NODE,
  });
});
afterAll(() => cluster?.stop());
beforeEach(async () => {
  environment = await TestEnvironment.create("basic", cluster);
  await restrictController(environment);
  proxy = await TcpProxy.listen(Number(new URL(cluster.server).port));
});
afterEach(async () => {
  await controller?.end();
  await webhook?.end();
  proxy.close();
  await invariants?.close();
  await environment.end();
  controller = undefined;
  webhook = undefined;
  invariants = undefined;
});

it(`the invariants hold through ${STEPS} random operations and faults (seed ${seed})`, {
  timeout: 120_000 + 1500 * STEPS,
}, async () => {
  const random = randomOf(seed);
  invariants = await Invariants.observe(environment);
  await environment.createPipe({ name: "idle", cores: 1, replicas: 0 });
  webhook = await AdmissionWebhook.start(environment, "MutatingWebhookConfiguration", "idle");
  const service = new ServiceUnderTest(environment, invariants, random);
  const operations = new Operations(service, [
    new ObjectWriters(service),
    new InPlaceOperations(service),
    new AdmissionFaults(service, webhook),
  ]);
  await prepared(service, operations, 4);
  controller = await startController([environment.pipes]);
  await environment.waitForCondition("Ready", "True");
  await drawStrategy(service);
  await run(invariants, controller, [operations], STEPS);
});

it(`the invariants hold in ${OTHER_NAMESPACES + 1} namespaces through ${STEPS_OF_MANY} random steps (seed ${seed})`, {
  timeout: 180_000 + 1500 * STEPS_OF_MANY,
}, async () => {
  const random = randomOf(seed);
  const environments = [environment, ...(await environment.more(OTHER_NAMESPACES))];
  const services = new Map(environments.map(({ serviceId, pipes }) => [serviceId, pipes]));
  const observed = await Invariants.observe(environment, { services });
  invariants = observed;
  const underTest = environments.map((each) => new ServiceUnderTest(each, observed, random));
  const all = await Promise.all(
    underTest.map(async (service) => {
      const operations = new Operations(service, [
        new ObjectWriters(service),
        new InPlaceOperations(service),
      ]);
      await prepared(service, operations, 2);
      return operations;
    }),
  );
  controller = await startController([]);
  for (const each of environments) await each.waitForCondition("Ready", "True");
  for (const each of underTest) await drawStrategy(each);
  await run(observed, controller, all, STEPS_OF_MANY);
});

/** @param pipeNamespaces empty for all, with one watch for each kind */
async function startController(pipeNamespaces: readonly string[]): Promise<RestartingController> {
  // The clock of each process is right, an hour ahead or an hour behind.
  const randomClock = randomOf(seed + 1);
  return new RestartingController(environment, await controllerKubeconfig(environment, proxy.port), () => ({
    pipeNamespaces,
    clockErrorMs: Math.floor(randomClock() * 3 - 1) * HOUR_MS,
    resizeStrategy: "InPlaceOrRollout",
  }));
}

/** Deploys the first pipes. */
async function prepared(service: ServiceUnderTest, operations: Operations, pipes: number): Promise<void> {
  service.acceptDefault();
  await operations.addPipes(pipes);
}

/** Most services are resized in place: those with this strategy, and those without a strategy. */
async function drawStrategy(service: ServiceUnderTest): Promise<void> {
  const strategy = service.pick(["InPlaceOrRollout", null, "Rollout"]);
  await service.environment.patchScaling({ strategy });
}

/** Executes random operations and faults, requests a last size for all services, and checks the invariants. */
async function run(
  observed: Invariants,
  restarting: RestartingController,
  all: readonly Operations[],
  steps: number,
): Promise<void> {
  const random = randomOf(seed + 2);
  const faults = new RandomFaults(cluster, proxy, restarting, observed, random);
  try {
    for (let step = 0; step < steps; step++) {
      await all[Math.floor(random() * all.length)]?.any();
      await faults.any();
      await delay(random() * PAUSE_MS);
    }
    for (const each of all) {
      await waitFor(() => each.conclude(LAST_CORES).then(() => true), { what: "the last request" });
    }
    for (const { serviceId } of all) await observed.reached(LAST_CORES, { serviceId });
    await observed.quiet(QUIET_MS);
    await observed.end();
  } catch (error) {
    const operations = all.flatMap(({ log }) => log).toSorted();
    const folder = keep({
      operations: operations.join("\n"),
      history: observed.history,
      controller: restarting.output,
    });
    throw new Error(`${String(error)}\nOperations, history and log: ${folder}`, { cause: error });
  }
}

/** Writes files for the analysis of a failure to a folder in the cache, which keeps the last ten. Returns the path. */
function keep(texts: Readonly<Record<string, string>>): string {
  const failures = join(openPaths(env).cache, "failed-runs");
  mkdirSync(failures, { recursive: true });
  for (const old of readdirSync(failures).sort().slice(0, -9)) {
    rmSync(join(failures, old), { recursive: true });
  }
  const folder = join(failures, `${new Date().toISOString().replaceAll(":", "-")}-seed-${seed}`);
  mkdirSync(folder);
  for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, `${name}.log`), text);
  return folder;
}
