import { type ClusterOptions, startCluster } from "@pipe-scaling/local-cluster";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { it as base } from "vitest";
import type { ControllerOverrides } from "../../../src/controller/process.ts";
import type { ControllerSettings } from "../../../src/settings/controller.ts";
import type { PipeOptions } from "../../support/fixtures/pipe.ts";
import { World } from "../../support/test-environment.ts";
import { Invariants } from "./invariants.ts";

type OwnerPipe = Omit<PipeOptions, "namespace" | "serviceId" | "cores">;

/**
 * A test of a fault. It uses what its callback destructures, and vitest ends that after the test, in reverse order.
 *
 *     it("…", async ({ world, invariants, startPipes, askFor }) => {
 *       await startPipes([{ name: "pipe" }]);
 *       await askFor(4);                                     // … and the fault
 *       await invariants.settled(4, { quietMs: 1000 });
 *       await invariants.end();                              // throws if an invariant was violated
 *     });
 */
export const it = base
  /** A file overrides it if its tests stop components or need components of another kind. */
  .extend("clusterOptions", { scope: "file" }, "shared" as ClusterOptions | "shared")
  .extend("cluster", { scope: "file" }, async ({ clusterOptions }, { onCleanup }) => {
    if (clusterOptions === "shared") return sharedCluster();
    const cluster = await startCluster({ progress: silentProgress, ...clusterOptions });
    onCleanup(() => cluster.stop());
    return cluster;
  })
  .extend("world", async ({ cluster }, { onCleanup }) => {
    const world = await World.create("basic", cluster);
    onCleanup(() => world.end());
    return world;
  })
  .extend("invariants", async ({ world }, { onCleanup }) => {
    const invariants = await Invariants.observe(world);
    onCleanup(() => invariants.close());
    return invariants;
  })
  /** Starts a controller in this process, creates pipes of one core, and waits until they have come up. */
  .extend(
    "startPipes",
    ({ world, invariants }) =>
      async (
        pipes: readonly OwnerPipe[],
        settings: Partial<ControllerSettings> = {},
        overrides: ControllerOverrides = {},
      ): Promise<void> => {
        invariants.accept(1);
        await world.startController(settings, overrides);
        for (const pipe of pipes) await world.createPipe({ ...pipe, cores: 1 });
        const all = `${pipes.length}/${pipes.length}`;
        await waitFor(async () => (await world.scaling()).status?.pipes?.summary === all, {
          what: `${all} pipes to run one core`,
        });
        await world.waitForCondition("Ready", "True");
      },
  )
  /** Requests a size that the controller may apply from now on. */
  .extend("askFor", ({ world, invariants }) => async (cores: number): Promise<void> => {
    invariants.accept(cores);
    await world.askFor(cores);
  });
