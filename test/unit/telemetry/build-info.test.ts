import { Registry } from "prom-client";
import { expect, test } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { buildInfo } from "../../../src/telemetry/build-info.ts";

test("the build information has the version of the program and the value 1", async () => {
  const registry = new Registry();
  buildInfo(registry);
  expect(await registry.metrics()).toContain(`pipe_scaling_build_info{version="${packageJson.version}"} 1\n`);
});
