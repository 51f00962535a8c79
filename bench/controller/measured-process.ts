import { type ChildProcess, execFile } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import * as z from "zod";
import { argsWithoutContainer, NODE } from "../../deploy/image/node.ts";
import { type ChildOptions, startChild, waitForOutput } from "../child.ts";
import { evaluate } from "../inspector.ts";
import type { ControllerWorld } from "./world.ts";

const run = promisify(execFile);

/** Maximum length of standard error to keep. */
const MOST_ERRORS = 4000;

/**
 * A process that logs its steps with their times as lines of JSON. Its costs are read through the inspector. Node has
 * the same options as for the controller.
 */
export class MeasuredProcess {
  /** Start, in milliseconds since 1970. */
  readonly spawnedAtMs = Date.now();
  readonly #child: ChildProcess;
  readonly #inspector: Promise<string>;
  readonly #ended: Promise<unknown>;
  readonly #gone = new AbortController();

  /** @param onLine receives each line of standard output */
  constructor(
    { cluster, profileDir }: Pick<ControllerWorld, "cluster" | "profileDir">,
    options: ChildOptions,
    onLine: (line: string) => void,
  ) {
    // The inspector costs nothing until a client connects.
    const { env } = NODE.controller;
    const profiling = profileDir
      ? [
          "--cpu-prof",
          `--cpu-prof-dir=${profileDir}`,
          `--cpu-prof-name=${options.name}-${Date.now()}.cpuprofile`,
        ]
      : [];
    const nodeArgs = [...argsWithoutContainer("controller"), ...profiling, "--inspect=127.0.0.1:0"];
    this.#child = startChild(cluster, { ...options, nodeArgs, env: { ...env, ...options.env } });
    let errors = "";
    this.#child.stderr?.on("data", (chunk: Buffer) => {
      errors = (errors + chunk.toString()).slice(-MOST_ERRORS);
    });
    this.#ended = once(this.#child, "close").finally(() =>
      this.#gone.abort(
        new Error(`the process ${options.name} of the benchmark ended, and printed: ${errors}`),
      ),
    );
    this.#inspector = waitForOutput(this.#child.stderr, (text) => /ws:\S+/.exec(text)?.[0]);
    if (this.#child.stdout) createInterface(this.#child.stdout).on("line", onLine);
  }

  /** Aborted when the process ends, to stop waits for its output. */
  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  send(message: object): void {
    this.#child.send(message);
  }

  /** CPU time used so far. */
  async cpuSeconds(): Promise<number> {
    return z.number().parse(await evaluate(await this.#inspector, CPU_SECONDS));
  }

  /** RSS as the operating system reports it; the inspector would add some megabytes. */
  async rssBytes(): Promise<number> {
    const { stdout } = await run("ps", ["-o", "rss=", "-p", String(this.#child.pid)]);
    return Number(stdout) * 1024;
  }

  /** Sends SIGTERM, as Kubernetes does. */
  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    await this.#ended;
  }
}

const CPU_SECONDS = "(({ user, system }) => (user + system) / 1e6)(process.cpuUsage())";
