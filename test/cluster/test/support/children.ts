import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { Environment } from "../../environment.ts";
import { killProgramsRunFrom, programsRunFrom } from "../../processes.ts";
import { waitFor } from "../../wait.ts";

/** A process of a test, with its output and its end. */
export class Child {
  readonly process: ChildProcess;
  readonly #closed: Promise<unknown>;
  #stdout = "";
  #stderr = "";

  constructor(process: ChildProcess) {
    this.process = process;
    this.#closed = once(process, "close");
    process.stdout?.on("data", (chunk: Buffer) => {
      this.#stdout += chunk.toString();
    });
    process.stderr?.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
  }

  get stdout(): string {
    return this.#stdout;
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Resolves when `text` is in its output, on either stream. */
  async waitForOutput(text: string): Promise<void> {
    await this.waitUntil(() => this.#output.includes(text), `the process to print "${text}"`);
  }

  /** Resolves when `observe` returns true. Rejects with its output if it ends before that, or after 60 s. */
  async waitUntil(observe: () => boolean, what: string): Promise<void> {
    let ended = false;
    void this.#closed.then(() => {
      ended = true;
    });
    // The state may last only for a moment, so it is not observed again.
    const seen = await waitFor(() => (observe() ? "reached" : ended && "ended"), {
      what,
      intervalMs: 10,
    }).catch((error: unknown) => {
      throw new Error(`the wait for ${what} failed; the output was: ${this.#output}`, { cause: error });
    });
    if (seen === "reached") return;
    const code = this.process.exitCode ?? this.process.signalCode;
    throw new Error(`the process ended (${code}) before ${what}; its output was: ${this.#output}`);
  }

  get #output(): string {
    return `${this.#stdout}${this.#stderr}`;
  }

  /** Resolves to its exit code, or to the name of the signal that ended it. */
  async waitForEnd(): Promise<number | NodeJS.Signals | null> {
    // "close" instead of "exit", because then the output is complete.
    await this.#closed;
    return this.process.exitCode ?? this.process.signalCode;
  }
}

/** Runs a file with Node and only the given environment. It is killed when the test ends. */
export function startNode(file: URL, args: readonly string[], env: Environment): Child {
  const child = spawn(process.execPath, [fileURLToPath(file), ...args], { env: { ...env }, stdio: "pipe" });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return new Child(child);
}

/** Starts a process that only waits, with `path` as its program. It is killed when the test ends. */
export async function startIdle(folder: string, path: string): Promise<number> {
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1e9)"], {
    argv0: path,
    detached: true,
    stdio: "ignore",
  });
  child.unref();
  onTestFinished(() => killProgramsRunFrom(folder));
  await waitFor(() => programsRunFrom(folder).some(({ pid }) => pid === child.pid), {
    what: `a process to run with the program ${path}`,
    intervalMs: 5,
  });
  return child.pid ?? 0;
}
