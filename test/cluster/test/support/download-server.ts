import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { gzipSync } from "node:zlib";
import { Header } from "tar";
import { onTestFinished } from "vitest";
import { type Source, sources } from "../../binaries/sources.ts";
import { readVersions } from "../../binaries/versions.ts";
import { fakeProgram } from "./fake-programs.ts";

type Files = Map<string, string | Buffer>;

export interface DownloadServer {
  /** Value of PIPE_SCALING_DOWNLOAD_MIRROR. */
  readonly url: string;
  /** The files of all eight downloads, by path. Tests can change or remove them. */
  readonly files: Files;
  readonly requests: string[];
}

/**
 * Serves fake programs with the paths and formats of the official downloads.
 *
 * @param kubernetes version; the pinned one by default
 */
export async function startDownloadServer(kubernetes?: string): Promise<DownloadServer> {
  const files = officialFiles(kubernetes);
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

function officialFiles(kubernetes?: string): Files {
  const files: Files = new Map();
  const assets: { name: string; digest: string }[] = [];
  for (const { program, member, ...urls } of [
    ...official("amd64", kubernetes),
    ...official("arm64", kubernetes),
  ]) {
    const url = pathOf(urls.url);
    const sumUrl = pathOf(urls.sumUrl);
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

/** An archive like those of etcd and helm: a folder with another file and the program. */
export function tarGz(member: string, content: string): Buffer {
  const folder = `${member.slice(0, member.indexOf("/"))}/`;
  return gzipSync(
    Buffer.concat([
      entry("Directory", folder),
      entry("File", `${folder}README.md`, "x".repeat(700)),
      entry("File", member, content),
      Buffer.alloc(1024),
    ]),
  );
}

function entry(type: "Directory" | "File", path: string, content = ""): Buffer {
  const header = Buffer.alloc(512);
  new Header({ type, path, size: content.length, mode: 0o755 }).encode(header);
  return Buffer.concat([header, Buffer.from(content), Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

function official(arch: string, kubernetes?: string): Source[] {
  return sources(readVersions({ PIPE_SCALING_KUBERNETES_VERSION: kubernetes }), { os: "linux", arch });
}

/** Path of an official URL on a mirror. */
function pathOf(url: string): string {
  return url.replace("https:/", "");
}

/** Path of a download on a mirror. */
export function downloadPath(program: string, arch: "amd64" | "arm64"): string {
  const source = official(arch).find((each) => each.program === program);
  if (!source) throw new Error(`no download of ${program}`);
  return pathOf(source.url);
}
