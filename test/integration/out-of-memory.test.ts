import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DATABASE_TYPE, RETRY_ANNOTATION, SERVICE_LABEL, TYPE_LABEL } from "../../src/controller/names.ts";
import { objectPath, PODS } from "../../src/kube/paths.ts";
import { resourcesOf, TestEnvironment } from "../support/test-environment.ts";
import { restrictController } from "./in-place-account.ts";
import { podsOf, podUids } from "./pods.ts";

const IN_PLACE = { resizeStrategy: "InPlaceOrRollout" } as const;
/** The canary needs less time, so that the test does. */
const TIMEOUTS = { timeouts: { smallerMemoryMs: 500 } };
const NAMES = ["pipe-a", "pipe-b"];

describe("a service whose containers are OOM-killed after a smaller memory in place", () => {
  let environment: TestEnvironment;
  beforeEach(async () => {
    environment = await TestEnvironment.create();
    await restrictController(environment);
  });
  afterEach(() => environment.end());

  /** The kernel kills the container of a pod, and the kubelet starts it again. Times have whole seconds. */
  async function kill(pipe: string): Promise<void> {
    const pod = (await podsOf(environment)).find(({ metadata }) => metadata.name.startsWith(`${pipe}-`));
    if (!pod) throw new Error(`${pipe} has no pod`);
    const resizes = pod.metadata.managedFields?.filter(({ subresource }) => subresource === "resize") ?? [];
    const resizedAtMs = Math.max(...resizes.map(({ time = "" }) => Date.parse(time)));
    const finishedAtMs = await waitFor(
      () => {
        const nowMs = Math.floor(Date.now() / 1000) * 1000;
        return nowMs > resizedAtMs ? nowMs : undefined;
      },
      { what: "the second after the resize" },
    );
    const finishedAt = new Date(finishedAtMs).toISOString();
    const terminated = { exitCode: 137, reason: "OOMKilled", startedAt: finishedAt, finishedAt };
    const containerStatuses = pod.status?.containerStatuses?.map((each) => ({
      ...each,
      restartCount: (each.restartCount ?? 0) + 1,
      lastState: { terminated },
    }));
    await environment.client.json({
      method: "PATCH",
      path: `${objectPath(PODS, environment.pipes, pod.metadata.name)}/status`,
      patchType: "application/merge-patch+json",
      body: { status: { containerStatuses } },
    });
  }

  async function start(): Promise<() => Promise<unknown>> {
    const end = await environment.startController(IN_PLACE, TIMEOUTS);
    const podLabels = { [SERVICE_LABEL]: environment.serviceId, [TYPE_LABEL]: DATABASE_TYPE };
    for (const name of NAMES) await environment.createPipe({ name, cores: 1, podLabels });
    await environment.waitForCondition("Ready", "True");
    const areRunning = async () => {
      const all = await podsOf(environment);
      return all.length === 2 && all.every(({ status }) => status?.containerStatuses?.[0]?.resources);
    };
    await waitFor(areRunning, { what: "the pods to run" });
    await environment.requestSize(4);
    await environment.waitForCondition("Ready", "True");
    await environment.requestSize(1);
    await environment.waitForCondition("Ready", "True");
    return end;
  }

  async function expectGivenBack(): Promise<void> {
    const { status } = await environment.waitForCondition("Stalled", "True", "OutOfMemory");
    expect(status).toMatchObject({
      desired: { replicaCpuMillicores: 1000 },
      effective: { replicaCpuMillicores: 4000 },
      pipes: { updated: 0 },
      failures: [{ reason: "OutOfMemory", size: { replicaCpuMillicores: 1000 } }],
    });
    for (const name of NAMES) expect(resourcesOf(await environment.pipe(name))).toBe("4 16Gi 16Gi");
    for (const { spec } of await podsOf(environment))
      expect(spec.containers).toMatchObject([{ resources: { requests: { cpu: "4", memory: "16Gi" } } }]);
  }

  it("gets its previous size back in place, and keeps it under the next controller, until a retry is requested", async () => {
    const end = await start();
    const before = await podUids(environment);
    await kill("pipe-a");
    await kill("pipe-a");
    await expectGivenBack();
    await end();
    const writes = environment.log.filter(({ msg }) => msg === "resize-pod").length;
    await environment.startController(IN_PLACE, TIMEOUTS);
    await environment.createPipe({ name: "pipe-c", cores: 1, replicas: 0 });
    await waitFor(async () => resourcesOf(await environment.pipe("pipe-c")) === "4 16Gi 16Gi", {
      what: "the next controller to decide",
    });
    await expectGivenBack();
    expect(environment.log.filter(({ msg }) => msg === "resize-pod")).toHaveLength(writes);
    expect(await podUids(environment)).toEqual(before);
    await environment.patchScaling(undefined, { [RETRY_ANNOTATION]: new Date().toISOString() });
    await environment.waitForCondition("Ready", "True");
    expect(resourcesOf(await environment.pipe("pipe-a"))).toBe("1 4Gi 4Gi");
    expect(await podUids(environment)).toEqual(before);
  });

  it("gets it back if two pods are killed while no controller runs", async () => {
    const end = await start();
    const before = await podUids(environment);
    await end();
    for (const name of NAMES) await kill(name);
    await environment.startController(IN_PLACE, TIMEOUTS);
    await expectGivenBack();
    expect(await podUids(environment)).toEqual(before);
  });
});
