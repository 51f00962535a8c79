import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Pod, ReplicaSet } from "../../src/kube/objects.ts";
import { collectionPath, PODS, REPLICA_SETS } from "../../src/kube/paths.ts";
import { resourcesOf, World } from "./world.ts";

describe("with the strategy InPlaceOrRollout, the controller", () => {
  let world: World;
  beforeEach(async () => {
    world = await World.create();
  });
  afterEach(() => world.end());

  async function pods(): Promise<readonly Pod[]> {
    const { items } = await world.client.json<{ readonly items: readonly Pod[] }>({
      path: collectionPath(PODS, world.pipes),
    });
    return items;
  }

  async function replicaSets(): Promise<readonly ReplicaSet[]> {
    const { items } = await world.client.json<{ readonly items: readonly ReplicaSet[] }>({
      path: collectionPath(REPLICA_SETS, world.pipes),
    });
    return items;
  }

  it("resizes every pod without a restart, and the Deployment keeps its ReplicaSet", async () => {
    await world.startController({ resizeStrategy: "InPlaceOrRollout" });
    for (const name of ["pipe-a", "pipe-b"]) await world.createPipe({ name, cores: 1, replicas: 2 });
    await world.waitForCondition("Ready", "True");
    const running = async () => (await pods()).map(({ metadata }) => metadata.uid).sort();
    await waitFor(async () => (await pods()).every(({ status }) => status?.containerStatuses?.[0]?.resources), {
      what: "the pods to run",
    });
    const before = await running();
    await world.askFor(4);
    try {
      await world.waitForCondition("Ready", "True");
    } finally {
      console.log(world.log.slice(-40).map((line) => JSON.stringify(line)).join("\n"));
    }
    expect(await running()).toEqual(before);
    for (const name of ["pipe-a", "pipe-b"]) {
      const pipe = await world.pipe(name);
      expect(resourcesOf(pipe)).toBe("4 16Gi 16Gi");
      expect(pipe.spec.paused).toBeUndefined();
    }
    expect(await replicaSets()).toHaveLength(2);
    for (const pod of await pods()) {
      expect(pod.status?.containerStatuses).toMatchObject([
        { restartCount: 0, resources: { requests: { cpu: "4", memory: "16Gi" } } },
      ]);
    }
  });
});
