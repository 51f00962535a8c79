import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Configuration of the vitest runs that reporter.test.ts and clean-up.slow.test.ts start. */
// biome-ignore lint/style/noDefaultExport: vitest requires a default export
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.fixture.ts"],
    reporters: ["default", "../../../support/reporter.ts"],
    globalSetup: ["global-setup.ts", "../../../support/temp-folder.ts", "../../../cluster/end-workers.ts"],
  },
});
