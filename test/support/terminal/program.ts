import { spawn } from "node:child_process";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { inject, onTestFinished } from "vitest";

/** The released program. */
export const MAIN = inject("program");

export interface RunningProgram {
  out(): string;
  err(): string;
  /** Waits until the pattern is found in either output. */
  waitFor(pattern: string | RegExp): Promise<void>;
  signal(signal: NodeJS.Signals): void;
  /** Resolves when it has ended and all output was read. */
  readonly exitCode: Promise<number | null>;
}

/** Runs the program like a script: without a terminal, and with empty standard input. */
export function startProgram(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): RunningProgram {
  const child = spawn(process.execPath, [MAIN, ...args], {
    env: { ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  const ended = new AbortController();
  const exitCode = new Promise<number | null>((resolve) => {
    child.once("close", (code) => {
      ended.abort(new Error(`the program has ended: ${out}${err}`));
      resolve(code);
    });
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await exitCode;
  });
  const has = (pattern: string | RegExp) =>
    [out, err].some((text) => (typeof pattern === "string" ? text.includes(pattern) : pattern.test(text)));
  return {
    out: () => out,
    err: () => err,
    async waitFor(pattern) {
      if (has(pattern)) return;
      await waitFor(() => has(pattern), { what: `${pattern} in the output`, signal: ended.signal });
    },
    signal: (signal) => child.kill(signal),
    exitCode,
  };
}

export async function runProgram(
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> {
  const program = startProgram(args, env);
  const code = await program.exitCode;
  return { code, out: program.out(), err: program.err() };
}
