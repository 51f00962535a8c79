import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findBinaries } from "../cluster/binaries/find.ts";
import { cacheKey, readVersions, thisPlatform } from "../cluster/binaries/versions.ts";
import type { Environment } from "../cluster/environment.ts";
import { silentProgress } from "../cluster/progress.ts";
import { startDownloadServer } from "../cluster/testing/download-server.ts";
import { writeFakeGo, writeProgram, writePrograms } from "../cluster/testing/fake-programs.ts";
import { bareMachine, scratch } from "../cluster/testing/scratch.ts";

const KEY = cacheKey(readVersions(), thisPlatform());
const linux = process.platform === "linux";

function machine() {
  const { env, paths, bin } = bareMachine();
  const find = (more: Environment = {}) =>
    findBinaries({ env: { ...env, ...more }, paths, progress: silentProgress });
  const inCache = () => readdirSync(paths.binaries).sort();
  return { env, paths, bin, find, inCache, cacheFolder: join(paths.binaries, KEY) };
}

describe("the programs are found, in this order,", () => {
  test("in the folder that the user names, whatever else there is", async () => {
    const { find, bin } = machine();
    writeFakeGo(bin);
    await find();
    const own = writePrograms(scratch());
    const found = await find({ PIPE_SCALING_CLUSTER_BINARIES: own });
    expect(found.path("kubectl")).toBe(join(own, "kubectl"));
  });

  test("in the cache, without a look at downloads or Go", async () => {
    const server = await startDownloadServer();
    const { find, bin, cacheFolder } = machine();
    writeFakeGo(bin);
    await find();
    const asked = server.requests.length;
    const found = await find({ PIPE_SCALING_DOWNLOAD_MIRROR: server.url });
    expect(found.dir).toBe(cacheFolder);
    expect(server.requests.length).toBe(asked);
    expect(goRuns(bin)).toBe(1);
  });

  test.runIf(linux)("in the official downloads, before Go is asked", async () => {
    const server = await startDownloadServer();
    const { find, bin, cacheFolder } = machine();
    writeFakeGo(bin);
    const found = await find({ PIPE_SCALING_DOWNLOAD_MIRROR: server.url });
    expect(found.dir).toBe(cacheFolder);
    expect(found.source).toBe("the official downloads");
    expect(goRuns(bin)).toBe(0);
  });

  test("in a build with Go, where there are no downloads", async () => {
    const { find, bin, inCache } = machine();
    writeFakeGo(bin);
    const found = await find();
    expect(found.source).toBe("a build with Go");
    expect(goRuns(bin)).toBe(1);
    // What Go calls server is etcd, and nothing half-made is left.
    expect(existsSync(found.path("etcd"))).toBe(true);
    expect(inCache()).toEqual([KEY, "lock"]);
  });
});

describe("nothing is found", () => {
  test("with no Go and no internet: the message says what was tried, and the three ways out", async () => {
    const { find, cacheFolder, inCache } = machine();
    const message = await failure(find());
    expect(message).toContain(`the cache, ${cacheFolder}: not there, or not whole`);
    expect(message).toMatch(
      /the official downloads: .*(cannot be had|Kubernetes publishes no control plane)/,
    );
    expect(message).toContain("a build with Go: there is no go on the PATH");
    expect(message).toContain(
      "1. Set PIPE_SCALING_CLUSTER_BINARIES to a folder that holds etcd, kube-apiserver,",
    );
    expect(message).toContain("2. Make dl.k8s.io, github.com, api.github.com, get.helm.sh reachable");
    expect(message).toContain("3. Install Go 1.21 or later");
    expect(inCache()).toEqual(["lock"]);
  });

  test("with a Go that is too old to fetch its toolchain", async () => {
    const { find, bin } = machine();
    writeFakeGo(bin, { version: "go1.20.14" });
    expect(await failure(find())).toContain("is go1.20.14, older than 1.21");
    expect(goRuns(bin)).toBe(0);
  });

  test("with a Go that fails: its last words are in the message", async () => {
    const { find, bin, inCache } = machine();
    writeFakeGo(bin, { before: "echo 'dial tcp: lookup proxy.example: no such host' >&2; exit 1" });
    expect(await failure(find())).toContain("lookup proxy.example: no such host");
    expect(inCache()).toEqual(["lock"]);
  });

  test("with a disk that is full: one sentence, and no other way is tried", async () => {
    const { find, bin, inCache } = machine();
    writeFakeGo(bin, { before: "echo 'write $WORK/b001/_pkg_.a: no space left on device' >&2; exit 1" });
    const message = await failure(find());
    expect(message).toMatch(/^There is no room left for Go .* PIPE_SCALING_CACHE_DIR .*another disk\.$/);
    expect(inCache()).toEqual(["lock"]);
  });

  test("when what Go made does not run", async () => {
    const { find, bin, inCache } = machine();
    writeFakeGo(bin, { before: "trap 'echo exit 3 > \"$GOBIN/helm\"' EXIT" });
    expect(await failure(find())).toMatch(/a build with Go: helm does not run, it exits with 3/);
    expect(inCache()).toEqual(["lock"]);
  });

  test("in a folder of the user's that lacks some: it says which, and looks nowhere else", async () => {
    const { find, bin } = machine();
    writeFakeGo(bin);
    const own = writePrograms(scratch(), ["kubectl", "kwok", "kwokctl", "kube-apiserver"]);
    writeProgram(own, "server");
    const message = await failure(find({ PIPE_SCALING_CLUSTER_BINARIES: own }));
    expect(message).toContain(
      `PIPE_SCALING_CLUSTER_BINARIES is ${own}, but there is no executable etcd, kube-controller-manager, kube-scheduler, helm in it`,
    );
    expect(message).toContain("server is etcd: rename it");
    expect(goRuns(bin)).toBe(0);
  });

  test("on a platform that the cluster does not run on", () => {
    expect(() => thisPlatform("win32", "x64")).toThrow(/Linux and macOS .* not on win32\/x64.*WSL/);
  });
});

function goRuns(bin: string): number {
  const log = join(bin, "go.log");
  return existsSync(log) ? readFileSync(log, "utf8").trim().split("\n").length : 0;
}

async function failure(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => new Error("it did not fail"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error) || error.name !== "ClusterError") throw error;
  return error.message;
}
