import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { atExit } from "./at-exit.ts";
import type { Environment } from "./environment.ts";
import { messageOf } from "./errors.ts";

export interface RunOptions {
  readonly env: Environment;
  readonly cwd?: string;
  readonly input?: string;
  readonly signal?: AbortSignal | undefined;
  /** Argument zero, by which the process can be found later (processes.ts). */
  readonly argv0?: string;
  /**
   * In a process group of its own: a Ctrl-C in the terminal then reaches only us,
   * and we end the group, be it by the signal or when this process ends.
   */
  readonly detached?: boolean;
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end and returns what it said, whatever its exit code. */
export function run(program: string, args: readonly string[], options: RunOptions): Promise<Finished> {
  const { input, env, signal, detached = false, ...rest } = options;
  const child = spawn(program, args, { ...rest, detached, env: { ...env }, stdio: "pipe" });
  const end = () => {
    if (child.pid !== undefined) kill(child.pid, detached);
  };
  const disown = atExit(end);
  signal?.addEventListener("abort", end, { once: true });
  const finished = new Promise<Finished>((resolve, reject) => {
    const stdout = collected(child.stdout);
    const stderr = collected(child.stderr);
    child.once("error", (error) => {
      reject(new Error(`${program} could not be run: ${messageOf(error)}`, { cause: error }));
    });
    child.once("close", (code) => {
      if (signal?.aborted) reject(signal.reason);
      else resolve({ code, stdout: stdout(), stderr: stderr() });
    });
  });
  // A program that ends without reading its input is judged by its exit code.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input ?? "");
  if (signal?.aborted) end();
  return finished.finally(() => {
    signal?.removeEventListener("abort", end);
    disown();
  });
}

function collected(stream: Readable): () => string {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString();
}

function kill(pid: number, group: boolean): void {
  try {
    process.kill(group ? -pid : pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** The last lines of a text, for an error message. */
export function tail(text: string, lines = 12): string {
  return text.trimEnd().split("\n").slice(-lines).join("\n");
}
