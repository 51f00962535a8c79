import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { beforeEach, expect, onTestFinished, test } from "vitest";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "temp-folder-"));
  return () => rmSync(folder, { recursive: true, force: true });
});

test.each([
  ["ends", undefined],
  ["is interrupted with Ctrl-C", "SIGINT"],
  ["is terminated", "SIGTERM"],
] as const)("leaves no temporary files of the tests when the run %s", async (_how, signal) => {
  const fixture = signal ? "waiting" : "temporary";
  const config = "test/unit/project/reporter/vitest.config.ts";
  const started = spawn(
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "run", "--config", config, `${fixture}.fixture.ts`],
    { cwd: REPOSITORY, env: { ...environment, TMPDIR: folder }, stdio: "ignore" },
  );
  onTestFinished(() => {
    started.kill("SIGKILL");
  });
  const exited = once(started, "exit");
  if (signal) {
    const hasFile = () => readdirSync(folder, { recursive: true }).some((path) => path.includes("waiting-"));
    await waitFor(hasFile, { what: "a temporary file of the test" });
    started.kill(signal);
  }
  const [code] = await exited;
  expect(code === 0).toBe(signal === undefined);
  expect(readdirSync(folder)).toEqual([]);
});
