import { cpSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { environment } from "../../environment.ts";
import { run } from "../../run.ts";
import { sharedCluster } from "../../vitest.ts";
import { linkPackages, manifest, PACKAGE } from "../support/package-folder.ts";
import { scratch } from "../support/scratch.ts";

const { dependencies, devDependencies } = manifest;

test("the tests of the package pass in a copy of its folder, without the rest of the repository", async () => {
  const copy = join(scratch(), "local-cluster");
  cpSync(PACKAGE, copy, { recursive: true, filter: (path) => basename(path) !== "node_modules" });
  linkPackages(copy, Object.keys({ ...dependencies, ...devDependencies }));
  const { binaries } = await sharedCluster();
  const env = { ...environment, PIPE_SCALING_CLUSTER_BINARIES: binaries.dir };
  const words = ["node_modules/vitest/vitest.mjs", "run", "test/unit", "test/cluster/cluster.test.ts"];
  const { code, stdout, stderr } = await run(process.execPath, words, { cwd: copy, env });
  expect(code, `${stdout}${stderr}`).toBe(0);
});
