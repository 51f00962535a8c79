import { hash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { cachedFolder, findBinaries } from "../../binaries/find.ts";
import { thisPlatform } from "../../binaries/versions.ts";
import type { Environment } from "../../environment.ts";
import { silentProgress } from "../../progress.ts";
import { downloadPath, startDownloadServer, tarGz } from "../support/download-server.ts";
import { writeFakeGo, writeProgram, writePrograms } from "../support/fake-programs.ts";
import { bareMachine, scratch } from "../support/scratch.ts";

const linux = process.platform === "linux";

function machine() {
  const { env, paths, bin } = bareMachine();
  const cacheFolder = cachedFolder(paths);
  return {
    bin,
    cacheFolder,
    find: (more: Environment = {}) =>
      findBinaries({ env: { ...env, ...more }, paths, progress: silentProgress }),
    inCache: () => readdirSync(dirname(cacheFolder)).sort(),
  };
}

describe("the programs come from", () => {
  test("the folder that the user chooses, even if the cache has them", async () => {
    const { find, bin } = machine();
    writeFakeGo(bin);
    await find();
    const own = writePrograms(scratch());
    const found = await find({ PIPE_SCALING_CLUSTER_BINARIES: own });
    expect(found.path("kubectl")).toBe(join(own, "kubectl"));
  });

  test("the cache, without a request or a build", async () => {
    const server = await startDownloadServer();
    const { find, bin, cacheFolder } = machine();
    writeFakeGo(bin);
    await find();
    const found = await find({ PIPE_SCALING_DOWNLOAD_MIRROR: server.url });
    expect(found.dir).toBe(cacheFolder);
    expect(server.requests).toEqual([]);
    expect(goRuns(bin)).toBe(1);
  });

  test.runIf(linux)("the official downloads, without a build", async () => {
    const server = await startDownloadServer();
    const { find, bin, cacheFolder, inCache } = machine();
    writeFakeGo(bin);
    const found = await find({ PIPE_SCALING_DOWNLOAD_MIRROR: server.url });
    expect(found.dir).toBe(cacheFolder);
    expect(goRuns(bin)).toBe(0);
    expect(inCache()).toEqual([basename(cacheFolder), "lock"]);
  });

  test("a build with Go if the downloads are unreachable", async () => {
    const { find, bin, cacheFolder, inCache } = machine();
    writeFakeGo(bin);
    const found = await find();
    expect(goRuns(bin)).toBe(1);
    // Go names it server.
    expect(existsSync(found.path("etcd"))).toBe(true);
    expect(inCache()).toEqual([basename(cacheFolder), "lock"]);
  });

  test("a new build if the cache lacks one of them", async () => {
    const { find, bin, cacheFolder } = machine();
    writeFakeGo(bin);
    await find();
    rmSync(join(cacheFolder, "helm"));
    const found = await find();
    expect(existsSync(found.path("helm"))).toBe(true);
    expect(goRuns(bin)).toBe(2);
  });
});

const OLDER = { PIPE_SCALING_KUBERNETES_VERSION: "v1.32.13" };

describe("another version of Kubernetes", () => {
  test.runIf(linux)("is downloaded into a separate folder, with the same other programs", async () => {
    const server = await startDownloadServer("1.32.13");
    const { find, cacheFolder } = machine();
    const found = await find({ ...OLDER, PIPE_SCALING_DOWNLOAD_MIRROR: server.url });
    expect(found.dir).toBe(cacheFolder.replace(/kubernetes-[\d.]+/, "kubernetes-1.32.13"));
    const downloads = server.requests.filter((path) => !/sum|sha256|api\.github/i.test(path));
    expect(downloads.filter((path) => path.includes("/v1.32.13/"))).toHaveLength(4);
    expect(downloads).toHaveLength(8);
  });

  test("is built from its own module if the downloads are unreachable", async () => {
    const { find, bin } = machine();
    writeFakeGo(bin);
    const goMod = `module k8s.io/kubernetes

go 1.23.0

require k8s.io/api v0.0.0

replace (
	k8s.io/api => ./staging/src/k8s.io/api
)
`;
    writeFileSync(join(bin, "kubernetes.mod"), goMod);
    await find(OLDER);
    const runs = readFileSync(join(bin, "go.log"), "utf8").trim().split("\n");
    expect(runs).toEqual([
      expect.stringMatching(
        /^install .*gitVersion=v1\.32\.13 .* go\.etcd\.io\S+ helm\S+ \S+kwok \S+kwokctl$/,
      ),
      "mod download -json k8s.io/kubernetes@v1.32.13",
      expect.stringMatching(/^install .*gitVersion=v1\.32\.13 .* \S+kube-apiserver \S+ \S+ \S+kubectl$/),
    ]);
    expect(readFileSync(join(bin, "built.mod"), "utf8")).toBe(`module pipes.clouddb.dev/kubernetes

go 1.23.0

require k8s.io/api v0.0.0

replace (
	k8s.io/api => k8s.io/api v0.32.13
)

require k8s.io/kubernetes v1.32.13
`);
  });

  test("can be that of the folder that the user chooses", async () => {
    const { find } = machine();
    const own = writePrograms(scratch());
    for (const version of ["v1.32.13", "v1.32.13-vendor.1"]) {
      writeProgram(own, "kube-apiserver", `#!/bin/sh\n[ "$*" = --version ] && echo Kubernetes ${version}\n`);
      const found = await find({ ...OLDER, PIPE_SCALING_CLUSTER_BINARIES: own });
      expect(found.dir).toBe(own);
    }
  });

  test.each([
    ["another one", "echo Kubernetes v1.32.1", "Kubernetes v1.32.1"],
    ["unknown", "echo cannot execute >&2; exit 1", "cannot execute"],
  ])("is rejected if that of the folder that the user chooses is %s", async (_, script, printed) => {
    const own = writePrograms(scratch());
    writeProgram(own, "kube-apiserver", `#!/bin/sh\n${script}\n`);
    expect(await failure(machine().find({ ...OLDER, PIPE_SCALING_CLUSTER_BINARIES: own }))).toBe(
      `Kubernetes 1.32.13 was chosen, but PIPE_SCALING_CLUSTER_BINARIES is ${own}, whose kube-apiserver --version prints "${printed}". Choose no version, or unset PIPE_SCALING_CLUSTER_BINARIES to download or build this one.`,
    );
  });

  test("is rejected if it is none, even with a folder that the user chooses", async () => {
    const given = { PIPE_SCALING_CLUSTER_BINARIES: writePrograms(scratch()) };
    expect(await failure(machine().find({ ...given, PIPE_SCALING_KUBERNETES_VERSION: "foo" }))).toContain(
      '"foo" is not a version of Kubernetes.',
    );
  });

  test.each(["1.32", "latest", "2.0.0"])("is rejected if it is %s", async (version) => {
    expect(await failure(machine().find({ PIPE_SCALING_KUBERNETES_VERSION: version }))).toBe(
      `"${version}" is not a version of Kubernetes. Use a released version with its patch number, such as 1.35.4.`,
    );
  });
});

describe("the programs cannot be found", () => {
  test("without Go and internet, and the error says what was tried and what to do", async () => {
    const { find, cacheFolder, inCache } = machine();
    const message = await failure(find());
    expect(message).toContain(`the cache: ${cacheFolder} is missing or incomplete`);
    expect(message).toMatch(
      /the official downloads: .*(cannot be downloaded|Kubernetes publishes no control plane)/,
    );
    expect(message).toContain("a build with Go: go could not be run: spawn go ENOENT");
    expect(message).toContain(
      "1. Set PIPE_SCALING_CLUSTER_BINARIES to a folder that has etcd, kube-apiserver,",
    );
    expect(message).toContain("2. Make dl.k8s.io, github.com, api.github.com and get.helm.sh reachable");
    expect(message).toContain("3. Install Go 1.21 or later");
    expect(inCache()).toEqual(["lock"]);
  });

  test("if Go fails, and the error contains its last lines", async () => {
    const { find, bin, inCache } = machine();
    writeFakeGo(bin, { before: "echo 'dial tcp: lookup proxy.example: no such host' >&2; exit 1" });
    expect(await failure(find())).toContain("lookup proxy.example: no such host");
    expect(inCache()).toEqual(["lock"]);
  });

  test.runIf(linux)("if an archive does not have its program", async () => {
    const server = await startDownloadServer();
    for (const arch of ["amd64", "arm64"] as const) {
      const path = downloadPath("helm", arch);
      const content = tarGz(`linux-${arch}/another-program`, "");
      server.files.set(path, content).set(`${path}.sha256sum`, hash("sha256", content));
    }
    const { find, inCache } = machine();
    const message = await failure(find({ PIPE_SCALING_DOWNLOAD_MIRROR: server.url }));
    expect(message).toContain("the official downloads: helm is missing from the result");
    expect(inCache()).toEqual(["lock"]);
  });

  test("if the folder of the user lacks some, and the error names them, and nothing is built", async () => {
    const { find, bin } = machine();
    writeFakeGo(bin);
    const own = writePrograms(scratch(), ["kubectl", "kwok", "kwokctl", "kube-apiserver"]);
    writeProgram(own, "server");
    const message = await failure(find({ PIPE_SCALING_CLUSTER_BINARIES: own }));
    expect(message).toContain(
      `PIPE_SCALING_CLUSTER_BINARIES is ${own}, which has no executable etcd, kube-controller-manager, kube-scheduler, helm.`,
    );
    expect(message).toContain('"go install" names etcd "server": rename it');
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
    () => new Error("the programs were found"),
    (reason: unknown) => reason,
  );
  if (!(error instanceof Error) || error.name !== "ClusterError") throw error;
  return error.message;
}
