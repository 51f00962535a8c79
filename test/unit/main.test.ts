import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { bundle } from "../support/bundle.ts";

const SOURCES = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** The released program. */
let main: string;
beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), "pipe-scaling-entry-"));
  main = await bundle(folder);
  return () => rmSync(folder, { recursive: true });
}, 60_000);

/** Prints to standard error which packages a program loads. */
const SPY = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from "node:module";
  registerHooks({
    load(url, context, next) {
      const name = /node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1];
      if (name) console.error("loads " + name);
      return next(url, context);
    },
  });
`)}`;

interface Run {
  readonly child: ChildProcess;
  readonly output: () => { readonly out: string; readonly err: string };
  readonly exitCode: Promise<number | null>;
}

function start(
  args: readonly string[],
  {
    env = {},
    node = [],
    program = main,
  }: { env?: Record<string, string>; node?: string[]; program?: string } = {},
): Run {
  const child = spawn(process.execPath, [...node, program, ...args], {
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    err += chunk.toString();
  });
  const exitCode = new Promise<number | null>((resolve) => child.once("close", (code) => resolve(code)));
  return { child, output: () => ({ out, err }), exitCode };
}

async function run(args: readonly string[], options?: Parameters<typeof start>[1]) {
  const { exitCode, output } = start(args, options);
  return { code: await exitCode, ...output() };
}

/** Returns a port that is in use. */
async function takenPort(): Promise<number> {
  const server = createServer((_, response) => {
    response.end('{"items":[],"resources":[]}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const address: AddressInfo | string | null = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** Returns the address of an API server without any objects. */
async function emptyCluster(): Promise<string> {
  return `http://127.0.0.1:${await takenPort()}`;
}

/** A kubeconfig, by default with an unreachable server. */
function kubeconfig(server = "https://127.0.0.1:1"): string {
  const dir = mkdtempSync(join(tmpdir(), "pipe-scaling-entry-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "kubeconfig");
  writeFileSync(
    path,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "x",
      clusters: [{ name: "x", cluster: { server, "insecure-skip-tls-verify": true } }],
      users: [{ name: "x", user: { token: "t" } }],
      contexts: [{ name: "x", context: { cluster: "x", user: "x" } }],
    }),
  );
  return path;
}

describe("pipe-scaling", { timeout: 60_000 }, () => {
  test.each(["api", "controller"])("%s --help lists the flags that scripts rely on", async (name) => {
    const { code, out, err } = await run([name, "--help"]);
    expect([code, err]).toEqual([0, ""]);
    for (const flag of ["--kubeconfig", "--namespace", "--ops-port"]) expect(out).toContain(` ${flag} <`);
    expect(out.includes("  --port <")).toBe(name === "api");
  });

  test("loads the client library and the HTTP server only for commands that need them", async () => {
    // A bundle has no packages to load.
    const spied = { node: ["--import", SPY], program: SOURCES };
    const help = await run(["admin", "organization", "create", "--help"], spied);
    expect(help.err).toContain("loads commander");
    expect(help.err).not.toMatch(/loads (@kubernetes|express|prom-client|undici)/);
    const list = await run(["admin", "organization", "list", "--kubeconfig", "/no/such"], spied);
    expect(list.err).toContain("loads @kubernetes/client-node");
    expect(list.err).not.toContain("loads prom-client");
  });

  test("rejects invalid flags and variables of a process before it starts, and exits with 2", async () => {
    const { code, out, err } = await run(["controller", "--port", "1"]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("Unknown option '--port'");
    const byVariable = await run(["api"], { env: { PIPE_SCALING_PORT: "tcp://10.1.2.3:80" } });
    expect(byVariable.code).toBe(2);
    expect(byVariable.err).toContain("--port (or PIPE_SCALING_PORT)");
  });

  test("reports an invalid path alias with one sentence, without a stack trace", async () => {
    const { code, err } = await run(["api", "--path-aliases", "scaling=pipesScaling"]);
    expect(err).toMatch(
      /^--path-aliases .* the segment pipesScaling does not exist: .+\.\nSee pipe-scaling api --help\.\n$/,
    );
    expect(code).toBe(2);
  });

  test("reports an unusable TLS certificate or key with one sentence, without a stack trace", async () => {
    const { code, err } = await run(["api", "--tls-cert", kubeconfig(), "--tls-key", kubeconfig()]);
    expect(err).toMatch(
      /^The TLS certificate and key are unusable: .+\. They must be PEM files that match\.\nSee pipe-scaling api --help\.\n$/,
    );
    expect(code).toBe(2);
  });

  test.each(["api", "controller"])(
    "%s exits with 1 and one line if the kubeconfig does not exist",
    async (name) => {
      const { code, out, err } = await run([name, "--kubeconfig", "/no/such", "--log-level", "silent"]);
      expect({ code, out, err }).toEqual({
        code: 1,
        out: "",
        err: "The kubeconfig /no/such does not exist: set --kubeconfig or PIPE_SCALING_KUBECONFIG to the path of one.\n",
      });
    },
  );

  test("shows the stack trace of a missing kubeconfig only at the log level debug", async () => {
    const { err } = await run(["api", "--kubeconfig", "/no/such", "--log-level", "debug"]);
    expect(err).toMatch(/KubeConfigError: The kubeconfig .*\n {4}at /);
  });

  test.each(["admin organization list --output json", "controller --dry-run --log-level silent"])(
    "%s exits with 1 and one line if the server of the kubeconfig is unreachable",
    async (words) => {
      const { code, out, err } = await run([...words.split(" "), "--kubeconfig", kubeconfig()]);
      expect({ code, out }).toEqual({ code: 1, out: "" });
      expect(err).toMatch(/^The .* cannot be reached.* https:\/\/127\.0\.0\.1:1.*\n$/);
    },
  );

  test.each([
    ["api", "--port"],
    ["api", "--ops-port"],
    ["controller", "--ops-port"],
  ])("%s exits with 1 and one line if its port is in use (%s)", async (name, flag) => {
    const port = await takenPort();
    const others =
      name === "api"
        ? ["--port", "0", "--ops-port", "0"].filter((_, at) => at > 1 === (flag === "--port"))
        : [];
    const { code, err } = await run([
      name,
      flag,
      String(port),
      ...others,
      "--kubeconfig",
      kubeconfig(await emptyCluster()),
    ]);
    expect(code).toBe(1);
    expect(err).toBe(
      `127.0.0.1 port ${port} is in use by another program: stop it or choose another port.\n`,
    );
  });

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("api exits with 0 after %s", async (signal) => {
    const api = start([
      "api",
      "--port",
      "0",
      "--ops-port",
      "0",
      "--kubeconfig",
      kubeconfig(await emptyCluster()),
    ]);
    await waitFor(() => api.output().out.includes('"listening"'), { what: "the API to start listening" });
    api.child.kill(signal);
    expect(await api.exitCode).toBe(0);
    expect(api.output().err).toBe("");
  });
});
