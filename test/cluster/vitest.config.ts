import { defineConfig } from "vitest/config";

/** Runs the tests of this package without the rest of the repository. */
// biome-ignore lint/style/noDefaultExport: vitest takes a configuration by its default export
export default defineConfig({
  test: {
    include: ["test/{unit,cluster}/**/*.test.ts"],
    globalSetup: ["end-workers.ts", "test/support/shared-cluster.ts"],
    isolate: false,
    // The machine may be busy, and the first run fetches the programs.
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
});
