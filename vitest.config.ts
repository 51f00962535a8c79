import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Tests of the chart that only render it, of the image's files, and of releases. */
const WITHOUT_CLUSTER = "test/chart/{alerts,expressions,image,release,values}.test.ts";

export default defineConfig({
  test: {
    // Our reporter prints the counts as the very last line, after the cluster is removed.
    reporters: ["default", "./test/support/reporter.ts"],
    globalSetup: ["test/support/temp-folder.ts", "test/cluster/end-workers.ts"],
    // Every test has its own mocks.
    restoreMocks: true,
    // The machine may be busy. The default is 1 s.
    expect: { poll: { timeout: 20_000 } },
    // Loading the modules again for each file would take a quarter of the time. No module has state of its own, and no
    // test replaces a module.
    isolate: false,
    // Many tests only wait for a cluster.
    maxWorkers: 4,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/cluster/test/unit/**/*.test.ts"],
          // The cluster project builds it into one file first (test/support/global-setup.ts).
          provide: { program: fileURLToPath(new URL("src/main.ts", import.meta.url)) },
          // Most tests take milliseconds, but some start processes or simulate days, and the machine may be busy.
          testTimeout: 120_000,
        },
      },
      {
        extends: true,
        test: {
          name: "chart",
          include: [WITHOUT_CLUSTER],
          globalSetup: ["test/support/chart-setup.ts"],
          testTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: {
          name: "cluster",
          include: [
            "test/{api,integration,e2e,chart,cli}/**/*.test.ts",
            "test/cluster/test/cluster/**/*.test.ts",
          ],
          exclude: [WITHOUT_CLUSTER],
          // Starts one real cluster for all files, only if one of them runs.
          globalSetup: ["test/support/global-setup.ts"],
          // Waits for conditions have shorter timeouts; these end a test that hangs elsewhere.
          testTimeout: 180_000,
          hookTimeout: 180_000,
        },
      },
    ],
  },
});
