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
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { RETRY_ANNOTATION } from "../../../src/controller/names.ts";
import { AdmissionWebhook, ALL_KINDS } from "../../support/servers/admission-webhook.ts";
import { TestEnvironment } from "../../support/test-environment.ts";
import { restrictController } from "../in-place-account.ts";
import { AdmissionFaults } from "./admission-faults.ts";
import { controllerKubeconfig, RestartingController } from "./controller-process.ts";
import { InPlaceOperations } from "./in-place-operations.ts";
import { Invariants } from "./invariants.ts";
import { LabelOperations } from "./label-operations.ts";
import { LimitOperations } from "./limit-operations.ts";
import { ObjectWriters } from "./object-writers.ts";
import { OperationLog, type OtherWriters } from "./operation.ts";
import { Operations, SIZES_OF_NEW_PIPES } from "./operations.ts";
import { PauseOperations } from "./pause-operations.ts";
import { PodOperations } from "./pod-operations.ts";
import { RandomFaults } from "./random-faults.ts";
import { randomOf, seed } from "./random-numbers.ts";
import { RequestOperations } from "./request-operations.ts";
import { RevertingOwner } from "./reverting-owner.ts";
import { ServiceUnderTest } from "./service-under-test.ts";

const STEPS = Number(env["PIPE_SCALING_TEST_STEPS"] ?? 100);
/** The start and the end of the test with many namespaces take longer. */
const STEPS_OF_MANY = Math.ceil(STEPS / 3);
const OTHER_NAMESPACES = 39;
/** Maximum time between two steps. */
const PAUSE_MS = 500;
/** Average time of a step, at most. Some wait for a resize in place. */
const MOST_STEP_MS = 4000;
const LAST_CORES = 9;
const QUIET_MS = 3000;
/** After faults of up to 20 s, the pause before the next attempt of a write can be as long. */
const CONVERGES_MS = 120_000;
/** The status follows after the restart of a process or of the API server, and when a webhook allows it. */
const STATUS_FOLLOWS_MS = 30_000;
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
  timeout: 300_000 + MOST_STEP_MS * STEPS,
}, async () => {
  const random = randomOf(seed);
  const other = await environment.neighbor();
  const services = new Map([[other.serviceId, other.pipes]]);
  invariants = await Invariants.observe(environment, { services, statusFollowsMs: STATUS_FOLLOWS_MS });
  await environment.createPipe({ name: "idle", cores: 1, replicas: 0 });
  webhook = await AdmissionWebhook.start(environment, "MutatingWebhookConfiguration", "idle", ALL_KINDS);
  const service = new ServiceUnderTest(environment, invariants, random);
  const neighbor = new ServiceUnderTest(other, invariants, random);
  const log = new OperationLog();
  const ofBoth = [
    new Operations(service, log, [...writersOf(service, neighbor), new AdmissionFaults(service, webhook)]),
    new Operations(neighbor, log, writersOf(neighbor, service)),
  ];
  for (const each of ofBoth) await prepared(each, 4);
  controller = await startController([environment.pipes]);
  for (const each of ofBoth) await started(each);
  await run(invariants, controller, { all: ofBoth, log, steps: STEPS });
});

it(`the invariants hold in ${OTHER_NAMESPACES + 1} namespaces through ${STEPS_OF_MANY} random steps (seed ${seed})`, {
  timeout: 300_000 + MOST_STEP_MS * STEPS_OF_MANY,
}, async () => {
  const random = randomOf(seed);
  const environments = [environment, ...(await environment.more(OTHER_NAMESPACES))];
  const services = new Map(environments.map(({ serviceId, pipes }) => [serviceId, pipes]));
  const observed = await Invariants.observe(environment, { services, statusFollowsMs: STATUS_FOLLOWS_MS });
  invariants = observed;
  const underTest = environments.map((each) => new ServiceUnderTest(each, observed, random));
  const log = new OperationLog();
  const all = underTest.map((service) => new Operations(service, log, writersOf(service)));
  await Promise.all(all.map((each) => prepared(each, 2)));
  controller = await startController([]);
  for (const each of all) await started(each);
  await run(observed, controller, { all, log, steps: STEPS_OF_MANY });
});

/** People and programs that act on a service. */
function writersOf(service: ServiceUnderTest, neighbor?: ServiceUnderTest): readonly OtherWriters[] {
  return [
    new RequestOperations(service),
    new ObjectWriters(service),
    new InPlaceOperations(service),
    new PauseOperations(service),
    new LimitOperations(service),
    new PodOperations(service),
    new LabelOperations(service, neighbor),
    new RevertingOwner(service),
  ];
}

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
async function prepared(operations: Operations, pipes: number): Promise<void> {
  const { service } = operations;
  service.acceptDefault();
  // The service keeps what its pipes have, which may be decided before all of them are there.
  for (const cores of SIZES_OF_NEW_PIPES) service.accept(cores);
  await operations.addPipes(pipes);
  const requests = (await service.deployments()).map(
    ({ spec }) => spec.template.spec.containers[0]?.resources?.requests?.["cpu"],
  );
  service.accept(Math.max(...requests.map(Number)));
}

/**
 * Pipes of several sizes may have to restart, for which a request is necessary. Most services are resized in place:
 * those with this strategy, and those without a strategy.
 */
async function started({ service }: Operations): Promise<void> {
  const { environment: tested } = service;
  const request = { [RETRY_ANNOTATION]: new Date().toISOString() };
  await waitFor(() => tested.patchScaling({ strategy: "InPlaceOrRollout" }, request), {
    what: "the PipeScaling",
  });
  await tested.waitForCondition("Ready", "True");
  const strategy = service.pick(["InPlaceOrRollout", null, "Rollout"]);
  await tested.patchScaling({ strategy });
}

interface Run {
  readonly all: readonly Operations[];
  readonly log: OperationLog;
  readonly steps: number;
}

/** Executes random operations and faults, requests a last size for all services, and checks the invariants. */
async function run(
  observed: Invariants,
  restarting: RestartingController,
  { all, log, steps }: Run,
): Promise<void> {
  const random = randomOf(seed + 2);
  const services = all.map(({ service }) => service);
  const faults = new RandomFaults(cluster, proxy, restarting, services, random, log);
  try {
    for (let step = 0; step < steps; step++) {
      await all[Math.floor(random() * all.length)]?.any();
      await faults.any();
      await delay(random() * PAUSE_MS);
    }
    await faults.end();
    // A limit in the namespace of a service also refuses sizes of its neighbor, which are tried again minutes later.
    for (const each of all)
      await waitFor(() => each.end().then(() => true), { what: "the obstacles to end" });
    for (const each of all) {
      await waitFor(() => each.conclude(LAST_CORES).then(() => true), { what: "the last request" });
    }
    // The controller writes an annotation again that something has removed only if people ask for it.
    if (log.text.includes(" stripDeployments ")) {
      for (const { service } of all)
        await waitFor(() => service.requestRetry().then(() => true), { what: "the request of a retry" });
    }
    for (const { serviceId } of all)
      await observed.reached(LAST_CORES, { serviceId, timeoutMs: CONVERGES_MS });
    await observed.nonePaused();
    await observed.quiet(QUIET_MS);
    await observed.end();
    expect(all.flatMap(({ violations }) => violations)).toEqual([]);
    log.mustHaveHappened();
  } catch (error) {
    const folder = keep({
      operations: log.text,
      history: observed.history,
      controller: restarting.output,
      violations: [...observed.violations, ...all.flatMap(({ violations }) => violations)].join("\n"),
    });
    throw new Error(`${String(error)}\nOperations, history, violations and log: ${folder}`, { cause: error });
  } finally {
    await faults.end();
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
