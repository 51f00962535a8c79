import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // Ours prints the counts as the very last line, after the cluster is gone.
    reporters: ["default", "./test/reporter.ts"],
    // Every test has its own mocks.
    restoreMocks: true,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["test/unit/**/*.test.ts", "test/cluster/test/unit/**/*.test.ts"],
          // The others build it into one file first (test/support/global-setup.ts).
          provide: { program: fileURLToPath(new URL("src/main.ts", import.meta.url)) },
          // Most take milliseconds; some start processes, on machines that may be busy.
          testTimeout: 30_000,
          maxWorkers: 2,
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
          // One real cluster for all of them, only when one of them is to run.
          globalSetup: ["test/support/global-setup.ts"],
          // A test waits for conditions with limits of their own; these are for what hangs beside.
          testTimeout: 180_000,
          hookTimeout: 180_000,
          // Most wait most of the time; the cluster's own processes need the machine too.
          maxWorkers: 3,
          // Projects with different numbers of workers run one after the other.
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "kubelet",
          include: ["test/cluster/test/kubelet/**/*.test.ts"],
          testTimeout: 180_000,
          // The first run builds the kubelet.
          hookTimeout: 30 * 60_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
