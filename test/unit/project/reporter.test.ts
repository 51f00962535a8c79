import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import { expect, test } from "vitest";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));

test.concurrent.each([
  ["passing", 0, "1 passed, 0 failed"],
  ["mixed", 1, "2 passed, 1 failed, 1 skipped"],
  ["broken", 1, "0 passed, 1 failed"],
  ["mixed broken", 1, "2 passed, 2 failed, 1 skipped"],
  ["mixed hook", 1, "3 passed, 2 failed, 1 skipped"],
  ["mixed unhandled", 1, "3 passed, 2 failed, 1 skipped"],
  ["nothing-of-that-name", 1, "0 passed, 1 failed"],
])("a run of %s exits with %i, and its last line is: %s", async (files, code, line) => {
  const finished = await run(
    process.execPath,
    [
      "node_modules/vitest/vitest.mjs",
      "run",
      ...["--config", "test/unit/project/reporter/vitest.config.ts"],
      ...files.split(" ").map((file) => `${file}.fixture.ts`),
    ],
    { cwd: REPOSITORY, env: environment },
  );
  expect(finished.stdout.trimEnd().split("\n").at(-1)).toBe(line);
  expect(finished.code).toBe(code);
});
