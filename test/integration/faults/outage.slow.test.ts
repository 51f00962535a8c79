import { setTimeout as delay } from "node:timers/promises";
import { type Cluster, startCluster } from "@pipe-scaling/local-cluster";
import { killApiServer, REVIVABLE, restoreSnapshot, takeSnapshot } from "@pipe-scaling/local-cluster/outage";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { START_AFTER_ANNOTATION } from "@pipe-scaling/local-cluster/stages";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { type AdmissionResponse, AdmissionWebhook, deny } from "../../support/servers/admission-webhook.ts";
import { conditionOf, resourcesOf, TestEnvironment } from "../../support/test-environment.ts";
import { controllerKubeconfig, RestartingController } from "./controller-process.ts";
import { errorResponse, FaultyProxy } from "./faulty-proxy.ts";
import { Invariants } from "./invariants.ts";

let cluster: Cluster;
beforeAll(async () => {
  // A cluster of its own, because the tests kill its API server.
  cluster = await startCluster({ progress: silentProgress, componentArgs: REVIVABLE });
});
afterAll(() => cluster?.stop());

describe("during a rescale of four pipes", () => {
  const pipes = ["pipe-a", "pipe-b", "pipe-c", "pipe-d"];
  let environment: TestEnvironment;
  let invariants: Invariants;
  let controller: RestartingController;
  beforeEach(async () => {
    environment = await TestEnvironment.create("basic", cluster);
    invariants = await Invariants.observe(environment);
    controller = new RestartingController(environment, await controllerKubeconfig(environment));
    invariants.accept(1);
    for (const name of pipes)
      await environment.createPipe({ name, cores: 1, podAnnotations: { [START_AFTER_ANNOTATION]: "2s" } });
    await environment.waitForCondition("Ready", "True");
  });
  afterEach(async () => {
    await controller.end();
    await invariants.close();
    await environment.end();
  });

  /** Requests a size and returns in the middle of the rescale: the canary has been resized, and the last pipe has not. */
  async function begin(cores: number): Promise<void> {
    invariants.accept(cores);
    await environment.requestSize(cores);
    await waitFor(
      async () => {
        const sizes = await Promise.all(pipes.map(async (name) => resourcesOf(await environment.pipe(name))));
        return new Set(sizes).size === 2;
      },
      { what: "the rescale to be in progress", intervalMs: 10 },
    );
  }

  it.each([5, 60])(
    "a rescale completes after an outage of the API server of %i s",
    {
      timeout: 240_000,
    },
    async (seconds) => {
      await begin(4);
      await killApiServer(cluster);
      await delay(seconds * 1000);
      await cluster.revive();
      await invariants.settled(4, { quietMs: 2000 });
      await invariants.end();
    },
  );

  it("an etcd restore to the middle of an earlier rescale leads to the size requested then", {
    timeout: 240_000,
  }, async () => {
    await begin(2);
    await takeSnapshot(cluster);
    await invariants.settled(2, { quietMs: 0 });
    await begin(4);
    await invariants.settled(4, { quietMs: 0 });
    await invariants.end();

    const before = controller.current;
    await restoreSnapshot(cluster);
    invariants = await Invariants.observe(environment);
    invariants.accept(2);
    expect(await before.ended).toBe(1);
    // After an outage that was longer than the Lease, the process ends before it can detect the restore.
    await before.waitForLog(/etcd was restored from an older snapshot|the lease was lost/);
    await invariants.settled(2, { quietMs: 2000 });
    expect((await environment.scaling()).spec?.replicaCpuMillicores).toBe(2000);
    await begin(3);
    await invariants.settled(3, { quietMs: 1000 });
    await invariants.end();
  });
});

it("an etcd restore that no watch shows is noticed by the next write, whose conflict shows an older object", {
  timeout: 240_000,
}, async () => {
  const environment = await TestEnvironment.create("basic", cluster);
  const proxy = await FaultyProxy.start(cluster);
  const kubeconfig = proxy.kubeconfig(await controllerKubeconfig(environment));
  const controller = new RestartingController(environment, kubeconfig);
  try {
    await environment.createPipe({ name: "pipe", cores: 1 });
    await environment.waitForCondition("Ready", "True");
    await takeSnapshot(cluster);
    await environment.requestSize(2);
    await environment.waitForCondition("Ready", "True");

    let attempts = 0;
    let areWatchesCut = false;
    let isDenied = true;
    proxy.handle = ({ verb, resource, url }) => {
      // A read of one object after a conflict is a list of it.
      const isOfWatch = verb === "watch" || (verb === "list" && !url.includes("fieldSelector"));
      if (areWatchesCut && isOfWatch) return { type: "drop" };
      if (verb !== "patch" || resource !== "deployments") return undefined;
      attempts += 1;
      return isDenied ? errorResponse(500, "InternalError") : undefined;
    };
    await environment.requestSize(4);
    // The next one follows after 16 s.
    await waitFor(() => attempts === 5, { what: "five writes" });
    areWatchesCut = true;
    proxy.cutWatches();
    isDenied = false;
    const before = controller.current;
    await restoreSnapshot(cluster);
    // The conflict of this write, or of one to the status, which may be due before. After an outage that was longer than
    // the Lease, the process ends before it can detect the restore.
    await before.waitForLog(/etcd was restored from an older snapshot|the lease was lost/);
    expect(await before.ended).toBe(1);
    await controller.end();
    await environment.startController();
    await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe"))).toBe("1 4Gi 4Gi");
  } finally {
    await controller.end();
    await environment.end();
    await proxy.stop();
  }
});

it("a write that gets no response because of an outage holds the rollout budget for a few seconds after it at most", async () => {
  const first = await TestEnvironment.create("basic", cluster);
  const [second] = await first.more(1);
  if (!second) throw new Error("there is no second service");
  const options = { maxConcurrentRollouts: 1, pipeNamespaces: [first.pipes, second.pipes] };
  // After an outage that was longer than the Lease, another process goes on.
  const controller = new RestartingController(first, await controllerKubeconfig(first), () => options);
  onTestFinished(() => controller.end());
  for (const each of [first, second]) {
    await each.createPipe({ name: "pipe", cores: 1 });
    await each.waitForCondition("Ready", "True");
  }
  const webhook = await AdmissionWebhook.start(first, "ValidatingWebhookConfiguration", "pipe");
  const outage = Promise.withResolvers<AdmissionResponse>();
  webhook.respond = () => outage.promise;
  try {
    await first.requestSize(2);
    await waitFor(() => webhook.requests.length > 0, { what: "the write to be in flight" });
    await second.requestSize(2);
    const isWaiting = async () =>
      conditionOf(await second.scaling(), "Ready")?.message.includes(
        "1 waiting because the limit of concurrent rollouts across all services is reached",
      );
    await waitFor(isWaiting, { what: "the other service to wait" });
    await killApiServer(cluster);
    outage.resolve(deny(500, "not yet")());
    await cluster.revive();
    const revivedAt = performance.now();
    await waitFor(async () => resourcesOf(await second.pipe("pipe")) === "2 8Gi 8Gi", {
      what: "the other service to proceed",
    });
    expect(performance.now() - revivedAt).toBeLessThan(25_000);
  } finally {
    await webhook.end();
    await first.end();
  }
});
