import { randomInt } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/support/longest-first.ts";

/** Tests of the chart that only render it, of the image's files, and of releases. */
const RENDERED = "test/chart/{alerts,expressions,image,pod-values,release,text-rules,values}.test.ts";
/** `npm run test:slow` runs them. */
const SLOW = "test/**/*.slow.test.ts";
/** Tests of the judge and of the log of the fault tests, which are beside them and need no cluster. */
const JUDGES = "test/integration/faults/{judge,in-place-judge,ready-judge,restart-judge,operation}.test.ts";
const UNIT = ["test/unit/**/*.test.ts", "test/cluster/test/unit/**/*.test.ts", JUDGES];

/** `npm test` repeats the same random values in each run; `npm run test:slow` draws new ones. */
const FIXED_SEED = 1;
const givenSeed = environment["PIPE_SCALING_TEST_SEED"];
const seed = Number(givenSeed ?? FIXED_SEED);
const drawnSeed = Number(givenSeed ?? randomInt(2 ** 31));
/** The share of long property tests and matrices that `npm test` runs (test/support/num-runs.ts). */
const FEWER_RUNS = 1 / 4;
const ALL_RUNS = 1;

/** Random tests, and those of which `npm test` makes fewer runs. */
const REPEATED = /from "fast-check"|\/num-runs\.ts"/;
const propertyTests = globSync("test/**/*.test.ts").filter((file) =>
  REPEATED.test(readFileSync(file, "utf8")),
);
const isUnit = (file: string) => file.startsWith("test/unit/");

/** Most tests take milliseconds, but some start processes or simulate days, and the machine may be busy. */
const WITHOUT_CLUSTER_MS = 120_000;

/** Options of a project whose tests share a cluster, which starts only if one of its files runs. */
const WITH_CLUSTER = {
  globalSetup: ["test/support/build-program.ts", "test/support/shared-cluster.ts"],
  // Waits for conditions have shorter timeouts; these end a test that hangs elsewhere.
  testTimeout: 180_000,
  hookTimeout: 180_000,
};

export default defineConfig({
  test: {
    // Our reporter prints the counts as the very last line, after the cluster is removed.
    reporters: ["default", "./test/support/reporter.ts"],
    globalSetup: ["test/support/temp-folder.ts", "test/cluster/end-workers.ts"],
    setupFiles: ["test/support/property-seed.ts"],
    sequence: { sequencer: LongestFirst },
    provide: { seed, shareOfRuns: FEWER_RUNS },
    // Every test has its own mocks.
    restoreMocks: true,
    // The machine may be busy. The default is 1 s.
    expect: { poll: { timeout: 20_000 } },
    // Loading the modules again for each file would take a quarter of the time. No module has state of its own, and no
    // test replaces a module.
    isolate: false,
    // Many tests only wait for a cluster.
    maxWorkers: 6,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: UNIT,
          exclude: [SLOW],
          globalSetup: ["test/support/build-program.ts"],
          testTimeout: WITHOUT_CLUSTER_MS,
          hookTimeout: WITHOUT_CLUSTER_MS,
        },
      },
      {
        extends: true,
        test: {
          name: "chart",
          include: [RENDERED],
          globalSetup: ["test/support/chart-setup.ts"],
          testTimeout: WITHOUT_CLUSTER_MS,
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
          exclude: [RENDERED, JUDGES, SLOW],
          ...WITH_CLUSTER,
        },
      },
      {
        extends: true,
        test: {
          name: "properties",
          include: propertyTests.filter(isUnit),
          globalSetup: ["test/support/build-program.ts"],
          provide: { seed: drawnSeed, shareOfRuns: ALL_RUNS },
          testTimeout: WITHOUT_CLUSTER_MS,
        },
      },
      {
        extends: true,
        test: {
          name: "slow",
          include: [SLOW, ...propertyTests.filter((file) => !isUnit(file))],
          provide: { seed: drawnSeed, shareOfRuns: ALL_RUNS },
          ...WITH_CLUSTER,
        },
      },
      {
        extends: true,
        test: {
          name: "kubelet",
          include: ["test/cluster/test/kubelet/**/*.test.ts", "test/kubelet/**/*.test.ts"],
          testTimeout: 180_000,
          // The first run builds the kubelet.
          hookTimeout: 30 * 60_000,
        },
      },
    ],
  },
});
