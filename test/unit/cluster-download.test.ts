import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Staging } from "../cluster/binaries/cache.ts";
import { download } from "../cluster/binaries/download.ts";
import { officialHosts, sources } from "../cluster/binaries/sources.ts";
import { sumOf } from "../cluster/binaries/sums.ts";
import { extract } from "../cluster/binaries/untar.ts";
import { readVersions } from "../cluster/binaries/versions.ts";
import { silentProgress } from "../cluster/progress.ts";
import {
  type DownloadServer,
  downloadPath,
  startDownloadServer,
  tarGz,
} from "../cluster/testing/download-server.ts";
import { fakeProgram } from "../cluster/testing/fake-programs.ts";
import { scratch } from "../cluster/testing/scratch.ts";

async function downloaded(server: Pick<DownloadServer, "url">) {
  using staging = new Staging(scratch());
  const all = sources(readVersions(), { os: "linux", arch: "amd64" }, officialHosts(server.url)) ?? [];
  await download(staging, all, { progress: silentProgress });
  return new Map(
    readdirSync(staging.bin).map((name) => [name, readFileSync(`${staging.bin}/${name}`, "utf8")]),
  );
}

describe("the official downloads", () => {
  test("are taken when each has the sum that is published for it", async () => {
    const programs = await downloaded(await startDownloadServer());
    expect(programs.size).toBe(8);
    for (const [name, text] of programs) expect(text).toBe(fakeProgram(name));
  });

  test.each(["kube-apiserver", "kwokctl", "etcd", "helm"])(
    "are refused when %s is not what was published",
    async (program) => {
      const server = await startDownloadServer();
      server.files.set(downloadPath(program, "amd64"), fakeProgram("somebody else's"));
      await expect(downloaded(server)).rejects.toThrow(
        new RegExp(`${program}.* is not what was published: its SHA-256 is [0-9a-f]{64}, not [0-9a-f]{64}`),
      );
    },
  );

  test("are refused when no sum is published", async () => {
    const server = await startDownloadServer();
    const sums = [...server.files.keys()].find((path) => path.endsWith("SHA256SUMS")) ?? "";
    server.files.set(sums, `${"0".repeat(64)}  another-file.tar.gz\n`);
    await expect(downloaded(server)).rejects.toThrow(/no SHA-256 of etcd-.*\.tar\.gz is published/);
  });

  test("are refused when an archive does not hold the program", async () => {
    const server = await startDownloadServer();
    const other = server.files.get(downloadPath("helm", "arm64")) ?? "";
    const sum = server.files.get(`${downloadPath("helm", "arm64")}.sha256sum`) ?? "";
    server.files.set(downloadPath("helm", "amd64"), other);
    server.files.set(`${downloadPath("helm", "amd64")}.sha256sum`, String(sum).replace("arm64", "amd64"));
    await expect(downloaded(server)).rejects.toThrow("there is no linux-amd64/helm in the archive");
  });

  test("say which one is missing", async () => {
    const server = await startDownloadServer();
    server.files.delete(downloadPath("kubectl", "amd64"));
    await expect(downloaded(server)).rejects.toThrow(/kubectl cannot be had: it answers 404/);
  });

  test("say so when there is no way to them, before anything is downloaded", async () => {
    await expect(downloaded({ url: "http://127.0.0.1:1" })).rejects.toThrow(
      /\.sha256|SHA256SUMS|releases|sha256sum/,
    );
  });

  test("are not there for the control plane on macOS", () => {
    expect(
      sources(readVersions(), { os: "darwin", arch: "arm64" }, officialHosts(undefined)),
    ).toBeUndefined();
  });
});

test("a program is taken out of an archive that comes in many pieces", async () => {
  const dir = scratch();
  // Random, so that it stays as large when it is compressed.
  const content = randomBytes(300_000).toString("hex");
  writeFileSync(join(dir, "archive"), tarGz("folder/program", content));
  await extract(join(dir, "archive"), "folder/program", join(dir, "program"));
  expect(readFileSync(join(dir, "program"), "utf8") === content).toBe(true);
});

test("an archive that ends too soon is refused", async () => {
  const dir = scratch();
  const whole = tarGz("folder/program", randomBytes(30_000).toString("hex"));
  writeFileSync(join(dir, "archive"), whole.subarray(0, whole.length / 2));
  await expect(extract(join(dir, "archive"), "folder/program", join(dir, "program"))).rejects.toThrow();
});

describe("a published sum is read", () => {
  const sum = "a".repeat(64);

  test.each([
    ["the bare sum", `${sum}\n`],
    ["a line for each file", `${"b".repeat(64)}  other\n${sum}  file\n`],
    ["a line for a binary file", `${sum} *file`],
    ["a release on GitHub", JSON.stringify({ assets: [{ name: "file", digest: `sha256:${sum}` }] })],
  ])("from %s", (_, published) => {
    expect(sumOf("https://host/a/file", published)).toBe(sum);
  });

  test.each([
    ["nothing", ""],
    ["an error page", "<html>Not found</html>"],
    ["a shorter sum", "abc123  file"],
    ["another file's", `${sum}  other-file`],
    ["a release without digests", JSON.stringify({ assets: [{ name: "file", digest: null }] })],
    ["a digest of another kind", JSON.stringify({ assets: [{ name: "file", digest: `sha512:${sum}` }] })],
  ])("but not from %s", (_, published) => {
    expect(() => sumOf("https://host/a/file", published)).toThrow("no SHA-256 of file is published");
  });
});
