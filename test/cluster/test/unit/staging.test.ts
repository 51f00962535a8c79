import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sweepStaging, withStaging } from "../../binaries/staging.ts";
import { programsRunFrom } from "../../processes.ts";
import { startIdle } from "../support/children.ts";
import { scratch } from "../support/scratch.ts";

test("a staging folder is removed with the processes that run from it, even after an error", async () => {
  const cache = scratch();
  const failed = withStaging(cache, async ({ dir, bin }) => {
    expect(existsSync(bin)).toBe(true);
    await startIdle(dir, join(dir, "go"));
    throw new Error("the build failed");
  });
  await expect(failed).rejects.toThrow("the build failed");
  expect(readdirSync(cache)).toEqual([]);
  expect(programsRunFrom(cache)).toEqual([]);
});

test("a sweep removes the staging folders of killed runs and nothing else", () => {
  const cache = scratch();
  mkdirSync(join(cache, ".staging-abc", "bin"), { recursive: true });
  mkdirSync(join(cache, "kubernetes"));
  sweepStaging(cache);
  expect(readdirSync(cache)).toEqual(["kubernetes"]);
});
