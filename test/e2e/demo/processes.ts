import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Cluster } from "@pipe-scaling/local-cluster";
import { environment } from "@pipe-scaling/local-cluster/environment";
import { run } from "@pipe-scaling/local-cluster/run";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import * as z from "zod";

const MAIN = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));

/**
 * The environment of our programs, without variables that name another cluster or set an option.
 */
function ownEnvironment() {
  return Object.fromEntries(
    Object.entries(environment).filter(
      ([name]) => name !== "KUBECONFIG" && !name.startsWith("PIPE_SCALING_"),
    ),
  );
}

/** Runs `pipe-scaling …` as the platform team does, and returns the JSON that it prints. */
export async function pipeScaling(
  cluster: Cluster,
  args: readonly string[],
  signal: AbortSignal,
): Promise<unknown> {
  const finished = await run(
    process.execPath,
    [MAIN, ...args, "--output", "json", "--kubeconfig", cluster.kubeconfig],
    { env: ownEnvironment(), signal },
  );
  if (finished.code !== 0) {
    throw new Error(`pipe-scaling ${args.join(" ")} exited with ${finished.code}: ${finished.stderr.trim()}`);
  }
  return JSON.parse(finished.stdout);
}

/** A running `pipe-scaling api` or `controller`. */
export class OwnProcess {
  readonly name: string;
  readonly logPath: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<number | null>;

  constructor(cluster: Cluster, name: "api" | "controller", args: readonly string[]) {
    this.name = name;
    mkdirSync(join(cluster.dir, "logs"), { recursive: true });
    this.logPath = join(cluster.dir, "logs", `${name}.log`);
    const log = openSync(this.logPath, "a");
    this.#child = spawn(process.execPath, [MAIN, name, ...args], {
      env: ownEnvironment(),
      stdio: ["ignore", log, log],
      // The process belongs to the cluster, whose removal ends it too (processes.ts of test/cluster). It has its
      // own process group, so that Ctrl-C reaches only the demo.
      argv0: join(cluster.dir, "bin", `pipe-scaling-${name}`),
      detached: true,
    });
    closeSync(log);
    this.#ended = new Promise((resolve) => {
      this.#child.once("close", resolve);
      this.#child.once("error", () => resolve(null));
    });
  }

  /** Waits until the process is ready and returns its addresses. */
  async ready(signal: AbortSignal): Promise<Addresses> {
    const addresses = await this.#unlessItEnds(
      waitFor(() => addressesIn(readFileSync(this.logPath, "utf8")), {
        what: `${this.name} to listen`,
        signal,
      }),
    );
    await this.#unlessItEnds(
      waitFor(async () => (await fetch(`${addresses.opsUrl}/readyz`, { signal })).status === 200, {
        what: `${this.name} to be ready`,
        signal,
      }),
    );
    return addresses;
  }

  /** Ends the process like Kubernetes, and returns its exit code. */
  async stop(): Promise<number | null> {
    this.#child.kill("SIGTERM");
    return this.#ended;
  }

  async #unlessItEnds<T>(wait: Promise<T>): Promise<T> {
    const end = this.#ended.then((code) => {
      const last = readFileSync(this.logPath, "utf8").trimEnd().split("\n").at(-1);
      throw new Error(`pipe-scaling ${this.name} ended with exit code ${code}: ${last}`);
    });
    return await Promise.race([wait, end]);
  }
}

export interface Addresses {
  /** URL of the management API; absent for the controller. */
  readonly url: string | undefined;
  readonly opsUrl: string;
}

/** Finds the addresses in the log of a process. */
function addressesIn(log: string): Addresses | undefined {
  for (const line of log.split("\n")) {
    const parsed = listening.safeParse(fieldsOf(line));
    if (parsed.success) return { url: parsed.data.url, opsUrl: parsed.data.opsUrl };
  }
  return undefined;
}

const listening = z.object({ url: z.url().optional(), opsUrl: z.url() });

function fieldsOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    // An incomplete line.
    return undefined;
  }
}
