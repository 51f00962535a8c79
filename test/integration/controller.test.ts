import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { conditionOf, resourcesOf, World } from "./world.ts";

describe("the controller", () => {
  let world: World;
  beforeEach(async () => {
    world = await World.create();
  });
  afterEach(() => world.end());

  it("makes a service's PipeScaling with its first pipe, and leaves a pipe of the tier's size alone", async () => {
    await world.startController();
    await world.createPipe({ name: "pipe-a", cores: 1 });
    const scaling = await world.waitForCondition("Ready", "True", "Scaled");
    expect(scaling.spec).toEqual({});
    expect(scaling.status).toMatchObject({
      desired: {
        replicaCpuMillicores: 1000,
        replicaMemoryGb: 4,
        source: "TierDefault",
        summary: "1 cpu / 4 Gi",
      },
      effective: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
      pipes: { total: 1, updated: 1, summary: "1/1" },
      computeUnits: 0.5,
      tier: "basic",
    });
    expect((await world.pipe("pipe-a")).metadata.generation).toBe(1);
  });

  it("gives all pipes the size that is asked for, and nothing else", async () => {
    await world.startController();
    for (const name of ["pipe-a", "pipe-b", "pipe-c"])
      await world.createPipe({ name, cores: 1, replicas: 2 });
    await world.createPipe({ name: "other", cores: 1, type: "object-storage" });
    await world.waitForCondition("Ready", "True");
    await world.askFor(4);
    const scaling = await world.waitForCondition("Ready", "True");
    expect(scaling.status).toMatchObject({
      effective: { summary: "4 cpu / 16 Gi" },
      pipes: { summary: "3/3" },
      replicas: 6,
      computeUnits: 12,
    });
    expect(conditionOf(scaling, "Reconciling")).toBeUndefined();
    for (const name of ["pipe-a", "pipe-b", "pipe-c"]) {
      const pipe = await world.pipe(name);
      expect(resourcesOf(pipe)).toBe("4 16Gi 16Gi");
      expect(pipe.status?.updatedReplicas).toBe(2);
    }
    expect((await world.pipe("other")).metadata.generation).toBe(1);
  });
});
