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
  /** Argument 0, with which the process can be found later (processes.ts). */
  readonly argv0?: string;
  /**
   * Starts it in a separate process group, which a Ctrl-C in the terminal does not reach. This process then ends the
   * group, when the signal is aborted or when it exits itself.
   */
  readonly detached?: boolean;
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program and returns its output, whatever its exit code. */
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
  // If a program ends without reading its input, only its exit code matters.
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
    // The process has already ended.
  }
}

/** The last lines of a text, for an error message. */
export function tail(text: string, lines = 12): string {
  return text.trimEnd().split("\n").slice(-lines).join("\n");
}
