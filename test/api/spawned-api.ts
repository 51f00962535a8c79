import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { inject } from "vitest";
import { type Client, clientOf } from "./client.ts";
import { type ApiEnvironment, clientOfText } from "./environment.ts";

const MAIN = inject("program");

export interface SpawnedApi {
  readonly url: string;
  readonly opsUrl: string;
  readonly send: Client;
  readonly process: ChildProcess;
  /** The log lines so far. */
  log(): Readonly<Record<string, unknown>>[];
  stop(): Promise<void>;
}

export interface SpawnOptions {
  readonly port?: number;
  readonly flags?: readonly string[];
  /** Command-line options for Node. */
  readonly nodeArgs?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

const UNLIMITED = ["--rate-limit", "0", "--failed-logins", "0"];

/** Starts the bundled API as a separate process, and waits until its caches are filled. */
export async function spawnApi(
  environment: Pick<ApiEnvironment, "kubeconfig" | "records">,
  { port = 0, flags = UNLIMITED, nodeArgs = [], env = {} }: SpawnOptions = {},
): Promise<SpawnedApi> {
  const where = ["--kubeconfig", environment.kubeconfig, "--namespace", environment.records];
  const ports = ["--port", String(port), "--ops-port", "0"];
  const child = spawn(process.execPath, [...nodeArgs, MAIN, "api", ...where, ...ports, ...flags], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  const ended = new AbortController();
  child.once("close", () => ended.abort(new Error("the process has ended")));
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => {
    text += chunk.toString();
  });
  const log = () =>
    text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  async function stop(): Promise<void> {
    child.kill("SIGKILL");
    await closed;
  }
  try {
    const { url, opsUrl } = await waitFor(() => log().find(({ msg }) => msg === "listening"), {
      what: "the process to start listening",
      signal: ended.signal,
    });
    await waitFor(async () => (await clientOfText(opsUrl)("/readyz")).status === 200, {
      what: "the process to be ready",
      signal: ended.signal,
    });
    return { url, opsUrl, send: clientOf(url), process: child, log, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
