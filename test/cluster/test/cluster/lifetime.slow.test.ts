import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
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
import { type Child, startNode } from "../support/children.ts";
import { scratch } from "../support/scratch.ts";

const MAIN = new URL("../../main.ts", import.meta.url);
const START = new URL("../support/start-cluster.ts", import.meta.url);

let binaries: Binaries;

beforeAll(async () => {
  binaries = (await sharedCluster()).binaries;
});

test("killed components have the same data after a restart", async () => {
  await using own = await ownCluster({ nodes: 0, controllerManager: false });
  await kubectl(own.cluster, ["create", "namespace", "remembered"]);
  const before = own.cluster.pid("kube-apiserver");
  await own.cluster.kill("kube-apiserver");
  await own.cluster.kill("etcd");
  expect(() => own.cluster.pid("etcd")).toThrow(/^etcd of cluster .* is not running\.$/);
  await own.cluster.revive();
  expect(own.cluster.pid("kube-apiserver")).not.toBe(before);
  expect(await kubectl(own.cluster, ["get", "namespace", "remembered", "-o", "name"])).toBe(
    "namespace/remembered\n",
  );
});

describe("a cluster is removed completely when its process ends with", () => {
  test("SIGINT, even twice", async () => {
    const { child, left } = await starter("up: ");
    child.process.kill("SIGINT");
    child.process.kill("SIGINT");
    expect(await child.waitForEnd()).toBe("SIGINT");
    expect(left()).toEqual(NOTHING);
  });

  test.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s while the cluster starts", async (signal) => {
    const { child, left } = await starter();
    child.process.kill(signal);
    expect(await child.waitForEnd()).toBe(signal);
    expect(left()).toEqual(NOTHING);
  });

  test.each([
    ["exit", 7],
    ["throw", 1],
  ])("%s", async (command, code) => {
    const { child, left } = await starter();
    child.process.stdin?.write(`${command}\n`);
    expect(await child.waitForEnd()).toBe(code);
    expect(left()).toEqual(NOTHING);
  });

  test("SIGKILL, by the next command", async () => {
    const { child, left, env } = await starter("up: ");
    child.process.kill("SIGKILL");
    await child.waitForEnd();
    expect(left().clusters).toEqual(["child"]);
    const next = startNode(MAIN, ["list"], env);
    expect(await next.waitForEnd()).toBe(0);
    expect(next.stderr).toBe("Removed a cluster that a killed run left behind: child\n");
    expect(left()).toEqual(NOTHING);
  });
});

const UP = ["up", "--name", "kept", "--nodes", "0", "--no-controller-manager"];

test("a cluster that was started with up keeps running until down, and a second up uses it", async () => {
  const env = ownCache();
  const up = async () => {
    const child = startNode(MAIN, UP, env);
    expect(await child.waitForEnd()).toBe(0);
    return child.stdout;
  };
  expect(await up()).toMatch(
    /^Cluster "kept" started in [\d.]+ s:\n {2}API server {3}https:\/\/127\.0\.0\.1:\d+\n/,
  );
  const kept = await attachCluster("kept", env);
  expect(await up()).toMatch(/^Cluster "kept" is already running:\n/);
  expect(await kubectl(kept, ["get", "namespace", "default", "-o", "name"])).toBe("namespace/default\n");
  await expect(startCluster({ name: "kept", env, progress: silentProgress })).rejects.toThrow(
    /"kept" is already running/,
  );
  const down = startNode(MAIN, ["down", "--name", "kept"], env);
  expect(await down.waitForEnd()).toBe(0);
  expect(down.stdout).toBe('Cluster "kept" was removed.\n');
  expect(leftIn(env)).toEqual(NOTHING);
});

test("up restarts only the component that was killed", async () => {
  const env = ownCache();
  expect(await startNode(MAIN, UP, env).waitForEnd()).toBe(0);
  const kept = await attachCluster("kept", env);
  const etcd = kept.pid("etcd");
  await kept.kill("kube-apiserver");
  const again = startNode(MAIN, UP, env);
  expect(await again.waitForEnd()).toBe(0);
  expect(again.stdout).toMatch(/^Cluster "kept" restarted in [\d.]+ s:\n/);
  expect(await kubectl(kept, ["get", "namespace", "default", "-o", "name"])).toBe("namespace/default\n");
  expect(kept.pid("etcd")).toBe(etcd);
});

test.each([
  ["etcd", "etcdPort"],
  ["kube-apiserver", "kubeApiserverPort"],
] as const)("up says what to do when another program has the port of %s", async (component, option) => {
  const env = ownCache();
  expect(await startNode(MAIN, UP, env).waitForEnd()).toBe(0);
  const kept = await attachCluster("kept", env);
  await kept.kill(component);
  const [, port] =
    new RegExp(`${option}: (\\d+)`).exec(readFileSync(join(kept.dir, "kwokctl.yaml"), "utf8")) ?? [];
  // A killed process can have its port a moment longer.
  const other = await waitFor(() => listen(Number(port)), { what: "the port to be free" });
  onTestFinished(() => void other.close());
  const again = startNode(MAIN, UP, env);
  expect(await again.waitForEnd()).toBe(1);
  expect(again.stderr).toMatch(
    new RegExp(
      `^${component} exited, because another program has its port\\. The ports of a cluster never change: end the other program, or remove the cluster \\(.* down --name kept\\) and start it again\\. The last lines of its log:\n`,
    ),
  );
  expect(again.stderr).not.toContain("    at ");
  other.close();
  expect(await startNode(MAIN, UP, env).waitForEnd()).toBe(0);
});

test("up waits for a start in progress", async () => {
  const env = ownCache();
  const first = startNode(MAIN, UP, env);
  await untilEtcdRuns(first, env);
  // Otherwise, the start could be complete before the second process looks.
  first.process.kill("SIGSTOP");
  const second = startNode(MAIN, UP, env);
  await second.waitForOutput("waiting for it");
  first.process.kill("SIGCONT");
  expect(await second.waitForEnd()).toBe(0);
  const kept = await attachCluster("kept", env);
  expect(await kubectl(kept, ["get", "namespace", "default", "-o", "name"])).toBe("namespace/default\n");
  expect(second.stdout).toMatch(/^Cluster "kept" is already running:\n/);
  expect(second.stderr).toBe('Another process is starting cluster "kept"; waiting for it.\n');
  expect(await first.waitForEnd()).toBe(0);
});

async function listen(port: number): Promise<Server> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  return server;
}

const NOTHING = { clusters: [], processes: [] };

/** The environment of a separate cache, which has only the clusters of this test; the programs are shared. */
function ownCache() {
  const cache = join(scratch(), "cache");
  // Before the folder is removed, because a failed test must not leave a cluster behind.
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

/** Starts a process that starts a cluster. Resolves when it has printed `output`, or when its first component runs. */
async function starter(output?: string) {
  const env = ownCache();
  const child = startNode(START, [], env);
  const left = () => leftIn(env);
  if (output) await child.waitForOutput(output);
  else await untilEtcdRuns(child, env);
  return { child, left, env };
}

async function untilEtcdRuns(child: Child, env: ReturnType<typeof ownCache>): Promise<void> {
  await child.waitUntil(
    () => leftIn(env).processes.some(({ program }) => program.endsWith("/etcd")),
    "etcd to run",
  );
}
