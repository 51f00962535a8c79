import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Cluster, startCluster } from "../../cluster.ts";
import { type Kubelet, MEMORY_USAGE_ANNOTATION, startKubelet } from "../../kubelet.ts";
import { type PodSize, ResizablePod } from "../support/resizable-pod.ts";

/** A failed resize is retried every 10 to 15 s, and one that a restarted kubelet missed after 30 s. */
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

/** A pod on the kubelet's node, which is the only one. */
async function create(name: string, size: PodSize, annotations: Record<string, string> = {}) {
  const pod = await ResizablePod.create(cluster, "default", name, size, annotations);
  onTestFinished(() => pod.delete());
  return pod;
}

const usage = (quantity: string) => ({ [MEMORY_USAGE_ANNOTATION]: quantity });

describe("a kubelet", () => {
  test("resizes a running container", async () => {
    const pod = await create("done", SMALL);
    const { containerID } = await pod.hasSize(SMALL);
    for (const size of [LARGE, SMALL]) {
      await pod.resize(size);
      expect(await pod.hasSize(size)).toMatchObject({ containerID, restartCount: 0 });
    }
  });

  test("defers a resize that its node has no room for until another pod goes", async () => {
    const other = await create("other", LARGE);
    const pod = await create("deferred", LARGE);
    await pod.resize({ ...LARGE, cpu: "3" });
    expect(await pod.reports("Deferred")).toMatchObject({ allocated: LARGE, actual: LARGE });
    await other.delete();
    await pod.hasSize({ ...LARGE, cpu: "3" });
  });

  test("reports an error while the memory in use exceeds the new limit", async () => {
    const pod = await create("used", LARGE, usage("2Gi"));
    await pod.resize(SMALL);
    expect(await pod.reports("Error", RETRY_MS)).toMatchObject({ allocated: SMALL, actual: LARGE });
    await pod.annotate(`${MEMORY_USAGE_ANNOTATION}=512Mi`);
    expect(await pod.hasSize(SMALL, RETRY_MS)).toMatchObject({ restartCount: 0 });
  });
});

describe("a kubelet that restarts", () => {
  test("does a resize that was accepted while it was dead", async () => {
    const pod = await create("missed", SMALL);
    const { containerID } = await pod.hasSize(SMALL);
    await kubelet.kill();
    await pod.resize(LARGE);
    expect(await pod.view()).toMatchObject({ isObserved: false, allocated: SMALL });
    await kubelet.start();
    expect(await pod.hasSize(LARGE, RETRY_MS)).toMatchObject({ containerID, restartCount: 0 });
  });

  test("finishes a resize that was in progress", async () => {
    const pod = await create("interrupted", LARGE, usage("2Gi"));
    const { containerID } = await pod.hasSize(LARGE);
    await pod.resize(SMALL);
    await pod.isAllocated(SMALL);
    await kubelet.kill();
    await kubelet.start();
    await pod.annotate(`${MEMORY_USAGE_ANNOTATION}=512Mi`);
    expect(await pod.hasSize(SMALL, RETRY_MS)).toMatchObject({ containerID, restartCount: 0 });
  });
});
