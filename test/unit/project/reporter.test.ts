import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import { describe, expect, test } from "vitest";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));

/** Runs vitest; returns its exit code and its output. */
async function vitest(...args: readonly string[]) {
  const words = ["node_modules/vitest/vitest.mjs", "run", ...args];
  const { code, stdout } = await run(process.execPath, words, { cwd: REPOSITORY, env: environment });
  return { code, output: stdout, lastLine: stdout.trimEnd().split("\n").at(-1) };
}

describe.concurrent("a test run", () => {
  test.each([
    ["passing", 0, "1 passed, 0 failed"],
    ["mixed hook broken unhandled", 1, "4 passed, 4 failed, 1 skipped"],
    ["nothing-of-that-name", 1, "0 passed, 1 failed"],
  ])("of %s exits with %i, and its last line is: %s", async (files, code, line) => {
    const config = ["--config", "test/unit/project/reporter/vitest.config.ts"];
    const fixtures = files.split(" ").map((file) => `${file}.fixture.ts`);
    expect(await vitest(...config, ...fixtures)).toMatchObject({ code, lastLine: line });
  });

  test("that names files that it does not run fails for each of them, with the right command", async () => {
    const named = ["test/unit/domain/size.test.ts", "test/api/keys.test.ts", "test/e2e/demo.slow.test.ts"];
    const { code, output, lastLine } = await vitest("--project", "unit", ...named, "test/unit/none.test.ts");
    expect(output).toContain("Run: npm test -- test/api/keys.test.ts");
    expect(output).toContain("Run: npm run test:slow -- test/e2e/demo.slow.test.ts");
    expect(output).toContain("There is no test file test/unit/none.test.ts.");
    expect(lastLine).toMatch(/^\d+ passed, 3 failed$/);
    expect(code).toBe(1);
  });
});
