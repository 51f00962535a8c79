import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { builtinModules } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { DOCS_ASSETS, gzippedAsset } from "../../../src/api/openapi/docs-assets.ts";
import { bundle } from "../../support/bundle.ts";

const run = promisify(execFile);

/** Prints to standard error which files a program loads. */
const SPY = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  registerHooks({
    load(url, context, next) {
      console.error("loads " + url);
      return next(url, context);
    },
  });
`)}`;

describe("the bundle", { timeout: 60_000 }, () => {
  let dir: string;
  let program: string;

  /** Writes the output of `npm run build` to a folder from where no package can be resolved. */
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "pipe-scaling-bundle-"));
    program = await bundle(dir);
  }, 60_000);
  afterAll(() => rmSync(dir, { recursive: true }));

  function codeFiles(): readonly string[] {
    return readdirSync(dir, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".mjs"))
      .map((name) => join(dir, name));
  }

  const node = (...args: string[]) => run(process.execPath, [program, ...args], { cwd: dir, env: {} });

  test("has an executable entry point, the files of the docs page and the licenses of the bundled packages", () => {
    expect(readdirSync(dir).sort()).toEqual([
      "THIRD-PARTY-LICENSES.txt",
      "chunks",
      "docs",
      "kubectl_complete-pipes",
      "program.mjs",
      "program.mjs.map",
    ]);
    const text = readFileSync(program, "utf8");
    expect(text).toMatch(/^#!\/usr\/bin\/env node\n/);
    expect(text).toMatch(/\/\/# sourceMappingURL=program\.mjs\.map\n?$/);
  });

  test("imports only modules of Node and its own files", () => {
    const imported = codeFiles().flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(/^import (?:.*from )?"([^"]+)";$/gm)].map(([, name = ""]) =>
        name.startsWith(".") ? resolve(dirname(file), name) : name,
      ),
    );
    expect(imported.length).toBeGreaterThan(5);
    const strangers = imported.filter(
      (name) => !builtinModules.includes(name.replace(/^node:/, "")) && !codeFiles().includes(name),
    );
    expect(strangers).toEqual([]);
  });

  test("loads the API only for the api process, because each loaded file takes memory", async () => {
    const [api, ...others] = codeFiles().filter((file) =>
      /^async function runApi\(/m.test(readFileSync(file, "utf8")),
    );
    expect(others).toEqual([]);
    for (const name of ["controller", "api"]) {
      const loaded = await run(
        process.execPath,
        ["--import", SPY, program, name, "--kubeconfig", "/no/such"],
        { env: {} },
      ).catch(({ stderr }: { stderr: string }) => stderr);
      expect(String(loaded).includes(`loads ${pathToFileURL(api ?? "").href}\n`)).toBe(name === "api");
    }
  });

  test("has a license text for each package that it depends on", () => {
    const licenses = readFileSync(join(dir, "THIRD-PARTY-LICENSES.txt"), "utf8");
    for (const [name, version] of Object.entries(packageJson.dependencies)) {
      expect(licenses).toMatch(new RegExp(`^${name} ${version} \\(.+\\)\n=+\n\n\\S`, "m"));
    }
    // Packages that other packages depend on or contain.
    expect(licenses).toContain("Copyright (c) 2020 Vercel, Inc.");
    expect(licenses).toContain("Copyright (c) 2018 Jed Watson.");
  });

  test("is ASCII, because V8 stores it with one byte per character", () => {
    for (const file of codeFiles()) expect(readFileSync(file).every((byte) => byte < 0x80)).toBe(true);
  });

  test("serves the same API documentation as the files that it is bundled from", async () => {
    const url = await startApi();
    expect(await (await fetch(`${url}/openapi.json`)).json()).toMatchObject({ openapi: "3.1.0" });
    for (const name of DOCS_ASSETS) {
      const response = await fetch(`${url}${name === "index.html" ? "/docs" : `/docs/${name}`}`);
      expect(response.status).toBe(200);
      expect(await response.text()).toBe(gunzipSync(gzippedAsset(name)).toString());
    }
  });

  /** Starts the API of the bundle with a minimal cluster. */
  async function startApi(): Promise<string> {
    const cluster = createServer((_request, response) => response.end("{}")).listen(0, "127.0.0.1");
    await once(cluster, "listening");
    const address = cluster.address();
    const server = `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`;
    const kubeconfig = join(dir, "kubeconfig");
    writeFileSync(kubeconfig, kubeconfigOf(server));
    const args = [program, "api", "--kubeconfig", kubeconfig, "--port", "0", "--ops-port", "0"];
    const api = spawn(process.execPath, args, { cwd: dir, env: {}, stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(api, "exit");
    onTestFinished(async () => {
      api.kill("SIGTERM");
      await ended;
      cluster.closeAllConnections();
      cluster.close();
      rmSync(kubeconfig);
    });
    for await (const line of createInterface(api.stdout)) {
      const { msg, url } = JSON.parse(line);
      if (msg === "listening") return String(url);
    }
    throw new Error("the API ended before it listened");
  }

  test("runs without any installed package", async () => {
    expect((await node("--version")).stdout).toBe(`${packageJson.version}\n`);
    expect((await node("--help")).stdout).toContain("Usage: pipe-scaling");
    expect((await node("api", "--help")).stdout).toContain("--ops-port");
  });

  test.each(["api", "controller", "admin organization list"])(
    "contains everything that %s needs to start",
    async (words) => {
      await expect(node(...words.split(" "), "--kubeconfig", "/no/such")).rejects.toMatchObject({
        code: 1,
        stderr: expect.stringContaining("The kubeconfig /no/such does not exist"),
      });
    },
  );
});

function kubeconfigOf(server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "test",
    clusters: [{ name: "test", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "test", user: { token: "none" } }],
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
  });
}
