import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { onTestFinished } from "vitest";
import { officialHosts, sources } from "../binaries/sources.ts";
import { readVersions } from "../binaries/versions.ts";
import { fakeProgram } from "./fake-programs.ts";

type Files = Map<string, string | Buffer>;

export interface DownloadServer {
  /** What PIPE_SCALING_DOWNLOAD_MIRROR is to be. */
  readonly url: string;
  /** Everything that the eight downloads need, by path; a test spoils what it is about. */
  readonly files: Files;
  readonly requests: string[];
}

/** Serves fake programs in the places and the forms of the official downloads. */
export async function startDownloadServer(): Promise<DownloadServer> {
  const files = officialFiles();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    requests.push(path);
    const file = files.get(path);
    if (file === undefined) response.writeHead(404).end();
    else response.writeHead(200).end(file);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return { url: `http://127.0.0.1:${address.port}`, files, requests };
}

function officialFiles(): Files {
  const files: Files = new Map();
  const assets: { name: string; digest: string }[] = [];
  const all = sources(readVersions(), { os: "linux", arch: "amd64" }, (host) => `/${host}`) ?? [];
  const arm = sources(readVersions(), { os: "linux", arch: "arm64" }, (host) => `/${host}`) ?? [];
  for (const { program, url, sumUrl, member } of [...all, ...arm]) {
    const content = member ? tarGz(member, fakeProgram(program)) : Buffer.from(fakeProgram(program));
    files.set(url, content);
    const name = url.slice(url.lastIndexOf("/") + 1);
    const sum = createHash("sha256").update(content).digest("hex");
    if (sumUrl.endsWith(".sha256")) {
      files.set(sumUrl, `${sum}\n`);
    } else if (sumUrl.includes("api.github.com")) {
      assets.push({ name, digest: `sha256:${sum}` });
      files.set(sumUrl, JSON.stringify({ assets }));
    } else {
      files.set(sumUrl, `${files.get(sumUrl) ?? ""}${sum}  ${name}\n`);
    }
  }
  return files;
}

/** An archive as etcd's and helm's are: a folder, another file, and the one that is wanted. */
export function tarGz(member: string, content: string): Buffer {
  const folder = `${member.slice(0, member.indexOf("/"))}/`;
  return gzipSync(
    Buffer.concat([
      entry(folder, "", "5"),
      entry(`${folder}README.md`, "x".repeat(700), "0"),
      entry(member, content, "0"),
      Buffer.alloc(1024),
    ]),
  );
}

function entry(name: string, content: string, type: string): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write(`${content.length.toString(8).padStart(11, "0")}\0`, 124);
  header.write(type, 156);
  header.write("ustar\0", 257);
  return Buffer.concat([header, Buffer.from(content), Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

/** The address of one download on a mirror, for this machine's platform or another. */
export function downloadPath(program: string, arch: "amd64" | "arm64"): string {
  const all = sources(readVersions(), { os: "linux", arch }, officialHosts(undefined)) ?? [];
  const url = all.find((source) => source.program === program)?.url;
  if (!url) throw new Error(`no download of ${program}`);
  return url.replace("https:/", "");
}
