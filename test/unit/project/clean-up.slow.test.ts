import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { killProgramsRunFrom, programsRunFrom } from "@pipe-scaling/local-cluster/processes";
import { run as runProcess } from "@pipe-scaling/local-cluster/run";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";

const REPOSITORY = fileURLToPath(new URL("../../../", import.meta.url));

let folder: string;
let cache: string;

beforeEach(() => {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "clean-up-")));
  folder = join(dir, "tmp");
  mkdirSync(folder);
  cache = join(dir, "cache");
  return () => {
    killProgramsRunFrom(dir);
    rmSync(dir, { recursive: true, force: true });
  };
});

describe("a test run", () => {
  test.each([
    ["ends", undefined],
    ["is interrupted with Ctrl-C", "SIGINT"],
    ["is terminated", "SIGTERM"],
  ] as const)("leaves no temporary files when it %s", async (_how, signal) => {
    await run(signal ? "waiting" : "temporary", signal);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("that builds the program leaves no temporary files", async () => {
    const words = ["run", "--project", "unit", "test/unit/domain/size.test.ts"];
    const { code, stdout } = await runProcess(
      process.execPath,
      ["node_modules/vitest/vitest.mjs", ...words],
      {
        cwd: REPOSITORY,
        env: { ...environment, TMPDIR: folder },
      },
    );
    expect(code, stdout).toBe(0);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ["interrupted with Ctrl-C", "SIGINT"],
    ["terminated", "SIGTERM"],
  ] as const)("ends programs that run from its temporary files when it is %s", async (_how, signal) => {
    await run("kept", signal, () => expect(programsRunFrom(folder)).toHaveLength(1));
    expect(programsRunFrom(folder)).toEqual([]);
    expect(readdirSync(folder)).toEqual([]);
  });

  test.each([
    ["interrupted with Ctrl-C", "SIGINT"],
    ["terminated", "SIGTERM"],
  ] as const)("removes the clusters of its workers when it is %s", async (_how, signal) => {
    const clusters = join(cache, "kwok", "clusters");
    await run("cluster", signal, () => expect(programsRunFrom(clusters)).toHaveLength(1));
    expect(programsRunFrom(clusters)).toEqual([]);
    expect(readdirSync(clusters)).toEqual([]);
  });
});

/** Runs a fixture, and sends the signal when the fixture is waiting. */
async function run(
  fixture: string,
  signal?: NodeJS.Signals,
  onWaiting: () => void = () => undefined,
): Promise<void> {
  const config = "test/unit/project/reporter/vitest.config.ts";
  const started = spawn(
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "run", "--config", config, `${fixture}.fixture.ts`],
    {
      cwd: REPOSITORY,
      env: { ...environment, TMPDIR: folder, PIPE_SCALING_CACHE_DIR: cache },
      stdio: "ignore",
    },
  );
  onTestFinished(() => {
    started.kill("SIGKILL");
  });
  const exited = once(started, "exit");
  if (signal) {
    const isWaiting = () =>
      readdirSync(folder, { recursive: true }).some((path) => path.includes("waiting-"));
    await waitFor(isWaiting, { what: "the fixture to be waiting" });
    onWaiting();
    started.kill(signal);
  }
  const [code] = await exited;
  expect(code === 0).toBe(signal === undefined);
}
