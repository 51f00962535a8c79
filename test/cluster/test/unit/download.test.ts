import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { download, publishedSum } from "../../binaries/download.ts";
import { sources } from "../../binaries/sources.ts";
import { withStaging } from "../../binaries/staging.ts";
import { readVersions } from "../../binaries/versions.ts";
import { silentProgress } from "../../progress.ts";
import { type DownloadServer, downloadPath, startDownloadServer } from "../support/download-server.ts";
import { fakeProgram } from "../support/fake-programs.ts";
import { scratch } from "../support/scratch.ts";

async function downloaded(server: Pick<DownloadServer, "url">): Promise<Map<string, string>> {
  const programs = new Map<string, string>();
  await withStaging(scratch(), async (staging) => {
    const all = sources(readVersions(), { os: "linux", arch: "amd64" }, server.url);
    await download(staging, all, { progress: silentProgress });
    for (const name of readdirSync(staging.bin)) {
      programs.set(name, readFileSync(`${staging.bin}/${name}`, "utf8"));
    }
  });
  return programs;
}

describe("the download of the programs", () => {
  test("accepts all eight programs if each has its published checksum", async () => {
    const programs = await downloaded(await startDownloadServer());
    expect(programs.size).toBe(8);
    for (const [name, text] of programs) expect(text).toBe(fakeProgram(name));
  });

  test.each(["kube-apiserver", "kwokctl", "etcd", "helm"])(
    "rejects %s if its checksum is not the published one",
    async (program) => {
      const server = await startDownloadServer();
      server.files.set(downloadPath(program, "amd64"), fakeProgram("another"));
      await expect(downloaded(server)).rejects.toThrow(
        new RegExp(`${program}.* has the SHA-256 [0-9a-f]{64} instead of [0-9a-f]{64}`),
      );
    },
  );

  test("rejects a file without a published checksum", async () => {
    const server = await startDownloadServer();
    const sums = [...server.files.keys()].find((path) => path.endsWith("SHA256SUMS")) ?? "";
    server.files.set(sums, `${"0".repeat(64)}  another-file.tar.gz\n`);
    await expect(downloaded(server)).rejects.toThrow(/no SHA-256 of etcd-.*\.tar\.gz is published/);
  });

  test("names the file that the server does not have", async () => {
    const server = await startDownloadServer();
    server.files.delete(downloadPath("kubectl", "amd64"));
    await expect(downloaded(server)).rejects.toThrow(
      /kubectl cannot be downloaded: the server responds with 404/,
    );
  });

  test("requests a checksum first, so that an unreachable host is detected soon", async () => {
    await expect(downloaded({ url: "http://127.0.0.1:1" })).rejects.toThrow(
      /SHA256SUMS cannot be downloaded/,
    );
  });
});

describe("a published checksum", () => {
  const sum = "a".repeat(64);

  test.each([
    ["only a checksum", `${sum}\n`],
    ["a line for each file", `${"b".repeat(64)}  other\n${sum}  file\n`],
    ["a line for a binary file", `${sum} *file`],
    ["a release of GitHub", JSON.stringify({ assets: [{ name: "file", digest: `sha256:${sum}` }] })],
  ])("is read from %s", (_, published) => {
    expect(publishedSum("file", published)).toBe(sum);
  });

  test.each([
    ["an empty text", ""],
    ["an error page", "<html>Not found</html>"],
    ["a shorter checksum", "abc123  file"],
    ["the checksum of another file", `${sum}  other-file`],
    ["a release without digests", JSON.stringify({ assets: [{ name: "file", digest: null }] })],
    ["a digest of another kind", JSON.stringify({ assets: [{ name: "file", digest: `sha512:${sum}` }] })],
  ])("is not read from %s", (_, published) => {
    expect(() => publishedSum("file", published)).toThrow("no SHA-256 of file is published");
  });
});
