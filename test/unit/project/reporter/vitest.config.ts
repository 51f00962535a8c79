import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** What reporter.test.ts runs vitest on: runs that go wrong in each of the ways that count. */
// biome-ignore lint/style/noDefaultExport: vitest takes its configuration so
export default defineConfig({
  test: {
    root: fileURLToPath(new URL(".", import.meta.url)),
    include: ["*.fixture.ts"],
    reporters: ["default", "../../../support/reporter.ts"],
    globalSetup: ["global-setup.ts"],
  },
});
