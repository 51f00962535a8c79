import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** For the runs of reporter.test.ts, which fail in different ways, and of clean-up.test.ts. */
// biome-ignore lint/style/noDefaultExport: vitest takes its configuration so
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.fixture.ts"],
    reporters: ["default", "../../../support/reporter.ts"],
    globalSetup: ["global-setup.ts", "../../../support/temp-folder.ts", "../../../cluster/end-workers.ts"],
  },
});
