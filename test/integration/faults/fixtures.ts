import { type ClusterOptions, startCluster } from "@pipe-scaling/local-cluster";
import { silentProgress } from "@pipe-scaling/local-cluster/progress";
import { sharedCluster } from "@pipe-scaling/local-cluster/vitest";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { it as base } from "vitest";
import type { ControllerOverrides } from "../../../src/controller/process.ts";
import type { ControllerSettings } from "../../../src/settings/controller.ts";
import type { PipeOptions } from "../../support/fixtures/pipe.ts";
import { TestEnvironment } from "../../support/test-environment.ts";
import { Invariants } from "./invariants.ts";

type OwnerPipe = Omit<PipeOptions, "namespace" | "serviceId" | "cores">;

/**
 * A test of a fault. Vitest creates the fixtures that its callback destructures, and ends them after the test, in reverse
 * order.
 *
 *     it("…", async ({ environment, invariants, startPipes, requestSize }) => {
 *       await startPipes([{ name: "pipe" }]);
 *       await requestSize(4);                                     // … and the fault
 *       await invariants.settled(4, { quietMs: 1000 });
 *       await invariants.end();                              // throws if an invariant was violated
 *     });
 */
export const it = base
  /** Files override it if their tests stop components or need other options. */
  .extend("clusterOptions", { scope: "file" }, "shared" as ClusterOptions | "shared")
  .extend("cluster", { scope: "file" }, async ({ clusterOptions }, { onCleanup }) => {
    if (clusterOptions === "shared") return sharedCluster();
    const cluster = await startCluster({ progress: silentProgress, ...clusterOptions });
    onCleanup(() => cluster.stop());
    return cluster;
  })
  .extend("environment", async ({ cluster }, { onCleanup }) => {
    const environment = await TestEnvironment.create("basic", cluster);
    onCleanup(() => environment.end());
    return environment;
  })
  .extend("invariants", async ({ environment }, { onCleanup }) => {
    const invariants = await Invariants.observe(environment);
    onCleanup(() => invariants.close());
    return invariants;
  })
  /** Starts a controller in this process, creates pipes of one core, and waits until they have come up. */
  .extend(
    "startPipes",
    ({ environment, invariants }) =>
      async (
        pipes: readonly OwnerPipe[],
        settings: Partial<ControllerSettings> = {},
        overrides: ControllerOverrides = {},
      ): Promise<void> => {
        invariants.accept(1);
        await environment.startController(settings, overrides);
        for (const pipe of pipes) await environment.createPipe({ ...pipe, cores: 1 });
        const all = `${pipes.length}/${pipes.length}`;
        await waitFor(async () => (await environment.scaling()).status?.pipes?.summary === all, {
          what: `${all} pipes to run one core`,
        });
        await environment.waitForCondition("Ready", "True");
      },
  )
  /** Requests a size that the controller may apply from now on. */
  .extend("requestSize", ({ environment, invariants }) => async (cores: number): Promise<void> => {
    invariants.accept(cores);
    await environment.requestSize(cores);
  });
