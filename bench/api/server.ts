import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { certificatePair } from "@pipe-scaling/local-cluster/certificate";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";
import { RECORDS_NAMESPACE } from "../../deploy/chart/install.ts";
import { argsWithoutContainer, NODE } from "../../deploy/image/node.ts";
import { type ChildOptions, startChild, waitForOutput } from "../child.ts";
import { evaluate } from "../inspector.ts";
import { type ApiWorld, PIPES } from "./world.ts";

const run = promisify(execFile);

/** Everything is on: authentication, limits, metrics, and a log line for each request, written to a pipe. */
const EVERYTHING_ON = ["--port", "0", "--ops-port", "0", "--log-level", "info"];

const HIGHEST_LIMITS: readonly string[] = [
  // The maximum, so that the API counts requests but rejects none.
  ...["--rate-limit", "10000", "--rate-window", "1s"],
  // The requests with invalid credentials come from many networks.
  ...["--trusted-proxies", "127.0.0.1"],
];

/** No flags, so the API has its default limits: for attacks and the measurement of its start. */
export const DEFAULT_LIMITS: readonly string[] = [];

/** The Node options of the chart. The baselines have them, too. */
const NODE_ARGS = argsWithoutContainer("api");

/** Flags for HTTPS with an ECDSA key, as the chart requests. Clients must not verify the certificate. */
export function tlsFlags({ cluster }: ApiWorld): readonly string[] {
  const [certFile, keyFile] = [join(cluster.dir, "api.crt"), join(cluster.dir, "api.key")];
  const { cert, key } = certificatePair("api");
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key, { mode: 0o600 });
  return ["--tls-cert", certFile, "--tls-key", keyFile];
}

/** The measured HTTP server, a separate process. */
export interface Server {
  readonly url: string;
  /** CPU time used so far. */
  cpuSeconds(): Promise<number>;
  /** Minimum over several full garbage collections. */
  memory(): Promise<Memory>;
  /** RSS as the operating system reports it. */
  rssBytes(): Promise<number>;
  stop(): Promise<void>;
}

export interface Memory {
  readonly rssBytes: number;
  /** Size of the live objects on the heap. */
  readonly heapBytes: number;
}

export interface Api extends Server {
  readonly opsUrl: string;
  /** Returns the value of a metric, summed over its labels; 0 if it has no series. */
  metric(name: string): Promise<number>;
}

/**
 * Starts the bundled API. Resolves once it is ready.
 *
 * @param limits flags
 */
export async function startApi(
  { cluster, kubeconfig }: ApiWorld,
  program: string,
  limits = HIGHEST_LIMITS,
): Promise<Api> {
  const where = [
    ...["--kubeconfig", kubeconfig, "--namespace", RECORDS_NAMESPACE],
    ...["--pipe-namespaces", PIPES],
  ];
  const { server, opsUrl } = await serve(cluster, {
    name: "api",
    file: program,
    args: ["api", ...EVERYTHING_ON, ...limits, ...where],
  });
  if (opsUrl === undefined) throw new Error("the API logged no operations port");
  const isReady = async () => (await fetch(`${opsUrl}/readyz`)).status === 200;
  await waitFor(isReady, { what: "the API to be ready" });
  return {
    ...server,
    opsUrl,
    metric: async (name) => sumOfMetric(await (await fetch(`${opsUrl}/metrics`)).text(), name),
  };
}

/** The baselines: express without middleware, and express with the features of the API from libraries. */
const BASELINES = {
  bare: new URL("bare.ts", import.meta.url),
  libraries: new URL("libraries.ts", import.meta.url),
};

/** Starts a baseline, with the Node options of the API. */
export async function startBaseline(
  { cluster, authorizations }: ApiWorld,
  name: keyof typeof BASELINES,
  path: string,
  constant: string,
): Promise<Server> {
  const args = [path, constant, JSON.stringify(authorizations)];
  const { server } = await serve(cluster, { name, file: fileURLToPath(BASELINES[name]), args });
  return server;
}

async function serve(cluster: Cluster, options: Omit<ChildOptions, "nodeArgs" | "env">) {
  // The inspector costs nothing until a client connects.
  const nodeArgs = [...NODE_ARGS, "--inspect=127.0.0.1:0"];
  const child = startChild(cluster, { ...options, nodeArgs, env: NODE.api.env });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const [inspector, { url, opsUrl }] = await Promise.all([
    waitForOutput(child.stderr, (text) => /ws:\S+/.exec(text)?.[0]),
    waitForOutput(child.stdout, listeningIn),
  ]);
  const server: Server = {
    url,
    cpuSeconds: async () => z.number().parse(await evaluate(inspector, CPU_SECONDS)),
    memory: () => leastMemory(inspector),
    async rssBytes() {
      const { stdout } = await run("ps", ["-o", "rss=", "-p", String(child.pid)]);
      return Number(stdout) * 1024;
    },
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
  return { server, opsUrl };
}

function sumOfMetric(text: string, name: string): number {
  const lines = text.split("\n").filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

/** One garbage collection can leave tens of MiB that a later one frees, and the amount varies. */
async function leastMemory(inspector: string): Promise<Memory> {
  const seen: Memory[] = [];
  for (let collection = 0; collection < COLLECTIONS; collection += 1) {
    seen.push(memorySchema.parse(await evaluate(inspector, MEMORY, { collect: true })));
    await delay(COLLECTION_PAUSE_MS);
  }
  return {
    rssBytes: Math.min(...seen.map(({ rssBytes }) => rssBytes)),
    heapBytes: Math.min(...seen.map(({ heapBytes }) => heapBytes)),
  };
}

const COLLECTIONS = 8;
const COLLECTION_PAUSE_MS = 250;

const CPU_SECONDS = "(({ user, system }) => (user + system) / 1e6)(process.cpuUsage())";

const MEMORY = "(({ rss, heapUsed }) => ({ rssBytes: rss, heapBytes: heapUsed }))(process.memoryUsage())";

const memorySchema = z.object({ rssBytes: z.number(), heapBytes: z.number() });

const listeningSchema = z.object({ msg: z.literal("listening"), url: z.url(), opsUrl: z.url().optional() });

/** The API and the baselines log their address as a line of JSON. */
function listeningIn(text: string) {
  const line = text.split("\n").find((each) => each.includes('"listening"') && each.endsWith("}"));
  return line === undefined ? undefined : listeningSchema.parse(JSON.parse(line));
}
