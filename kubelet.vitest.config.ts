import { defineConfig } from "vitest/config";

/** Apart from the other tests, because the first run builds the kubelet, which takes minutes. */
export default defineConfig({
  test: {
    reporters: ["default", "./test/support/reporter.ts"],
    globalSetup: ["test/support/temp-folder.ts", "test/cluster/end-workers.ts"],
    include: ["test/cluster/test/kubelet/**/*.test.ts", "test/kubelet/**/*.test.ts"],
    testTimeout: 180_000,
    hookTimeout: 30 * 60_000,
  },
});
