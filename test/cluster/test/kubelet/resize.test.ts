import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../cluster.ts";
import { type Kubelet, MEMORY_USAGE_ANNOTATION, startKubelet } from "../../kubelet.ts";
import { type PodSize, ResizablePod } from "../support/resizable-pod.ts";

/** The kubelet retries a failed resize every 10 to 15 s. After a restart, it finds a missed one within 30 s. */
const RETRY_MS = 90_000;
const SMALL = { cpu: "1", memory: "1Gi" };
const LARGE = { cpu: "2", memory: "3Gi" };

let cluster: Cluster;
let kubelet: Kubelet;

beforeAll(async () => {
  cluster = await startCluster({ nodes: 0 });
  kubelet = await startKubelet(cluster, { nodeSize: { cpus: 4, memoryGib: 8 } });
});

afterAll(async () => {
  await cluster.stop();
});

/** Creates a pod on the node of the kubelet, which is the only one, and deletes it after the test. */
async function create(name: string, size: PodSize, annotations: Record<string, string> = {}) {
  const pod = await ResizablePod.create(cluster, "default", name, size, annotations);
  onTestFinished(() => pod.delete());
  return pod;
}

const usage = (quantity: string) => ({ [MEMORY_USAGE_ANNOTATION]: quantity });

describe("a kubelet", () => {
  test("resizes a running container", async () => {
    const pod = await create("done", SMALL);
    const { containerID } = await pod.waitForSize(SMALL);
    for (const size of [LARGE, SMALL]) {
      await pod.resize(size);
      expect(await pod.waitForSize(size)).toMatchObject({ containerID, restartCount: 0 });
    }
  });

  test("defers a resize that does not fit on its node until another pod is deleted", async () => {
    const other = await create("other", LARGE);
    const pod = await create("deferred", LARGE);
    await pod.resize({ ...LARGE, cpu: "3" });
    expect(await pod.waitForState("Deferred")).toMatchObject({ allocated: LARGE, actual: LARGE });
    await other.delete();
    await pod.waitForSize({ ...LARGE, cpu: "3" });
  });

  test("reports an error while the memory in use exceeds the new limit", async () => {
    const pod = await create("used", LARGE, usage("2Gi"));
    await pod.resize(SMALL);
    expect(await pod.waitForState("Error", RETRY_MS)).toMatchObject({ allocated: SMALL, actual: LARGE });
    await pod.annotate(`${MEMORY_USAGE_ANNOTATION}=512Mi`);
    expect(await pod.waitForSize(SMALL, RETRY_MS)).toMatchObject({ restartCount: 0 });
  });
});

describe("a kubelet that restarts", () => {
  test("makes a resize that the API server accepted while the kubelet was not running", async () => {
    const pod = await create("missed", SMALL);
    const { containerID } = await pod.waitForSize(SMALL);
    await kubelet.kill();
    await pod.resize(LARGE);
    expect(await pod.view()).toMatchObject({ isObserved: false, allocated: SMALL });
    await kubelet.start();
    expect(await pod.waitForSize(LARGE, RETRY_MS)).toMatchObject({ containerID, restartCount: 0 });
  });

  test("finishes a resize that was in progress", async () => {
    const pod = await create("interrupted", LARGE, usage("2Gi"));
    const { containerID } = await pod.waitForSize(LARGE);
    await pod.resize(SMALL);
    await pod.waitForAllocation(SMALL);
    await kubelet.kill();
    await kubelet.start();
    await pod.annotate(`${MEMORY_USAGE_ANNOTATION}=512Mi`);
    expect(await pod.waitForSize(SMALL, RETRY_MS)).toMatchObject({ containerID, restartCount: 0 });
  });
});
