import { readdirSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Binaries } from "../../binaries/binaries.ts";
import { attachCluster, startCluster } from "../../cluster.ts";
import { environment } from "../../environment.ts";
import { kubectl } from "../../kubectl.ts";
import { openPaths } from "../../paths.ts";
import { killProgramsRunFrom, programsRunFrom } from "../../processes.ts";
import { silentProgress } from "../../progress.ts";
import { sharedCluster } from "../../vitest.ts";
import { waitFor } from "../../wait.ts";
import { startNode } from "../support/children.ts";
import { scratch } from "../support/scratch.ts";

const MAIN = new URL("../../main.ts", import.meta.url);
const START = new URL("../support/start-cluster.ts", import.meta.url);

let binaries: Binaries;

beforeAll(async () => {
  binaries = (await sharedCluster()).binaries;
});

test("components that were killed come back with what they knew", async () => {
  await using own = await ownCluster({ nodes: 0, controllerManager: false });
  await kubectl(own.cluster, ["create", "namespace", "remembered"]);
  const before = own.cluster.pid("kube-apiserver");
  await own.cluster.kill("kube-apiserver");
  await own.cluster.kill("etcd");
  expect(() => own.cluster.pid("etcd")).toThrow(/^etcd of cluster .* does not run\.$/);
  await own.cluster.revive();
  expect(own.cluster.pid("kube-apiserver")).not.toBe(before);
  expect(await kubectl(own.cluster, ["get", "namespace", "remembered", "-o", "name"])).toBe(
    "namespace/remembered\n",
  );
});

describe("nothing is left of a cluster whose process ends by", () => {
  test("SIGINT, however often", async () => {
    const { child, left } = await starter("up: ");
    child.process.kill("SIGINT");
    child.process.kill("SIGINT");
    expect(await child.ends()).toBe("SIGINT");
    expect(left()).toEqual(NOTHING);
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s while it starts", async (signal) => {
    const { child, left } = await starter();
    child.process.kill(signal);
    expect(await child.ends()).toBe(signal);
    expect(left()).toEqual(NOTHING);
  });

  test.each([
    ["exit", 7],
    ["throw", 1],
  ])("%s", async (command, code) => {
    const { child, left } = await starter();
    child.process.stdin?.write(`${command}\n`);
    expect(await child.ends()).toBe(code);
    expect(left()).toEqual(NOTHING);
  });

  test("SIGKILL, once the next one looks", async () => {
    const { child, left, env } = await starter("up: ");
    child.process.kill("SIGKILL");
    await child.ends();
    expect(left().clusters).toEqual(["child"]);
    const next = startNode(MAIN, ["list"], env);
    expect(await next.ends()).toBe(0);
    expect(next.stderr).toBe("Removed what a run that was killed had left: child\n");
    expect(left()).toEqual(NOTHING);
  });
});

test("a cluster that is kept outlives its process until it is taken down, and is there only once", async () => {
  const env = ownCache();
  const flags = ["--name", "kept", "--nodes", "0", "--no-controller-manager"];
  const up = async () => {
    const child = startNode(MAIN, ["up", ...flags], env);
    expect(await child.ends()).toBe(0);
    return child.stdout;
  };
  expect(await up()).toMatch(
    /^Cluster "kept" is up after [\d.]+ s:\n {2}API server {3}https:\/\/127\.0\.0\.1:\d+\n/,
  );
  const kept = await attachCluster("kept", env);
  expect(await up()).toMatch(/^Cluster "kept" runs already:\n/);
  expect(await kubectl(kept, ["get", "namespace", "default", "-o", "name"])).toBe("namespace/default\n");
  await expect(startCluster({ name: "kept", env, progress: silentProgress })).rejects.toThrow(
    /"kept" runs already/,
  );
  const down = startNode(MAIN, ["down", "--name", "kept"], env);
  expect(await down.ends()).toBe(0);
  expect(down.stdout).toBe('Cluster "kept" is gone.\n');
  expect(leftIn(env)).toEqual(NOTHING);
});

const NOTHING = { clusters: [], processes: [] };

/** A cache of this test's own, so that it sees its own clusters alone; the programs are the shared cluster's. */
function ownCache() {
  const cache = join(scratch(), "cache");
  // Before the folder goes: a test that fails must not leave a cluster behind.
  onTestFinished(() => killProgramsRunFrom(cache));
  return {
    ...environment,
    PIPE_SCALING_CACHE_DIR: cache,
    PIPE_SCALING_CLUSTER_BINARIES: binaries.dir,
  };
}

function leftIn(env: ReturnType<typeof ownCache>) {
  const { clusters } = openPaths(env);
  return { clusters: readdirSync(clusters), processes: programsRunFrom(clusters) };
}

async function ownCluster(options: { nodes: number; controllerManager: boolean }) {
  const own = await startCluster({ ...options, env: ownCache(), progress: silentProgress });
  return { cluster: own, [Symbol.asyncDispose]: () => own.stop() };
}

/** A process that starts a cluster; returned as soon as it has said something, or its first component runs. */
async function starter(said?: string) {
  const env = ownCache();
  const child = startNode(START, [], env);
  const left = () => leftIn(env);
  if (said) await child.says(said);
  else
    await waitFor(() => left().processes.some(({ program }) => program.endsWith("/etcd")), {
      what: "etcd to run",
      timeoutMs: 60_000,
    });
  return { child, left, env };
}
