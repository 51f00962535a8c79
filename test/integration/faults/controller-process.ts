import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { environment as env } from "@pipe-scaling/local-cluster/environment";
import { serviceAccountKubeconfig } from "@pipe-scaling/local-cluster/service-account";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { inject } from "vitest";
import type { ResizeStrategy } from "../../../src/domain/resize-strategy.ts";
import { accountName } from "../../support/fixtures/shipped-account.ts";
import type { TestEnvironment } from "../../support/test-environment.ts";

const MAIN = inject("program");

/** Delay of a restart. That of the kubelet grows with each restart. */
const RESTART_MS = 200;

/** Writes a kubeconfig of the controller's ServiceAccount. @param port of the API server; its own by default */
export async function controllerKubeconfig(
  { cluster, records }: TestEnvironment,
  port?: number,
): Promise<string> {
  const path = await serviceAccountKubeconfig(cluster, records, accountName("controller"));
  if (port !== undefined) {
    writeFileSync(path, readFileSync(path, "utf8").replace(cluster.server, `https://127.0.0.1:${port}`));
  }
  return path;
}

export interface ControllerProcessOptions {
  /** Namespaces of pipes, empty for all; that of the environment by default. */
  readonly pipeNamespaces?: readonly string[];
  /** Lead of its clock; negative if it is behind. */
  readonly clockErrorMs?: number;
  /** For PipeScalings without a strategy. */
  readonly resizeStrategy?: ResizeStrategy;
  readonly maxConcurrentRollouts?: number;
}

/** `pipe-scaling controller`, for faults that only a separate process can have. */
export class ControllerProcess {
  readonly #child: ChildProcess;
  /** The exit code, or the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals | null>;
  #output = "";

  constructor(
    { cluster, records, pipes }: TestEnvironment,
    kubeconfig: string,
    identity: string,
    {
      pipeNamespaces = [pipes],
      clockErrorMs = 0,
      resizeStrategy = "Rollout",
      maxConcurrentRollouts = 50,
    }: ControllerProcessOptions = {},
  ) {
    const options = {
      kubeconfig,
      identity,
      namespace: records,
      "ops-port": "0",
      "resize-strategy": resizeStrategy,
      "max-concurrent-rollouts": `${maxConcurrentRollouts}`,
      ...(pipeNamespaces.length > 0 ? { "pipe-namespaces": pipeNamespaces.join(",") } : {}),
    };
    const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
    this.#child = spawn(process.execPath, [...wrongClock(clockErrorMs), MAIN, "controller", ...args], {
      env: Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("PIPE_SCALING_"))),
      stdio: ["ignore", "pipe", "pipe"],
      // With a program in the folder of the cluster, so that its removal ends this process too (cluster/processes.ts).
      argv0: join(cluster.dir, "bin", `pipe-scaling-${identity}`),
      detached: true,
    });
    const keep = (chunk: Buffer) => {
      this.#output += chunk.toString();
    };
    this.#child.stdout?.on("data", keep);
    this.#child.stderr?.on("data", keep);
    this.ended = new Promise((resolve) => {
      this.#child.once("close", (code, signal) => resolve(code ?? signal));
    });
  }

  /** The log of the process so far. */
  get output(): string {
    return this.#output;
  }

  /** Resolves when the log contains this text. */
  async waitForLog(text: string | RegExp, timeoutMs = 60_000): Promise<void> {
    await waitFor(() => this.#output.search(text) >= 0, {
      what: `the controller to log "${text}" (its log: ${this.#output})`,
      timeoutMs,
      intervalMs: 10,
    });
  }

  /** Resolves when its caches are filled. */
  async isReady(): Promise<void> {
    const opsUrl = await waitFor(() => /"opsUrl":"([^"]+)"/.exec(this.#output)?.[1], {
      what: "the controller to listen",
    });
    const isReady = async () => {
      if ((await fetch(`${opsUrl}/readyz`)).ok) return true;
      throw new Error(`its log: ${this.#output}`);
    };
    await waitFor(isReady, { what: "the controller to be ready" });
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Kills it with SIGKILL; resolves when it has ended. */
  async kill(): Promise<void> {
    this.signal("SIGKILL");
    await this.ended;
  }
}

/** Arguments of Node that change the wall clock of the process. */
function wrongClock(errorMs: number): string[] {
  if (errorMs === 0) return [];
  const script = `const now = Date.now; Date.now = () => now() + ${errorMs};`;
  return ["--import", `data:text/javascript,${encodeURIComponent(script)}`];
}

/** A controller that is restarted whenever it ends, like by a kubelet. */
export class RestartingController {
  readonly #start: () => ControllerProcess;
  readonly #running: Promise<void>;
  #current: ControllerProcess;
  #isEnding = false;
  #starts = 1;
  #output = "";

  /** @param optionsOfNext returns the options of the next process */
  constructor(
    environment: TestEnvironment,
    kubeconfig: string,
    optionsOfNext: () => ControllerProcessOptions = () => ({}),
  ) {
    this.#start = () => new ControllerProcess(environment, kubeconfig, "restarting", optionsOfNext());
    this.#current = this.#start();
    this.#running = this.#keep();
  }

  /** The current process. */
  get current(): ControllerProcess {
    return this.#current;
  }

  get starts(): number {
    return this.#starts;
  }

  /** The log of all processes so far. */
  get output(): string {
    return this.#output + this.#current.output;
  }

  /** Ends the current process with SIGTERM. @throws Error if it takes longer */
  async terminate(mostMs: number): Promise<void> {
    const { current } = this;
    current.signal("SIGTERM");
    const late = new AbortController();
    const isLate = delay(mostMs, true, { signal: late.signal }).catch(() => false);
    if ((await Promise.race([current.ended.then(() => false), isLate])) === true)
      throw new Error(`the controller did not end within ${mostMs} ms after SIGTERM: ${current.output}`);
    late.abort();
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    this.#current.signal("SIGKILL");
    await this.#running;
  }

  async #keep(): Promise<void> {
    for (;;) {
      await this.#current.ended;
      await delay(RESTART_MS);
      if (this.#isEnding) return;
      this.#output += this.#current.output;
      this.#current = this.#start();
      this.#starts += 1;
    }
  }
}
