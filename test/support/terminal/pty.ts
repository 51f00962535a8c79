import { spawn } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { waitFor } from "@pipe-scaling/local-cluster/wait";
import { onTestFinished } from "vitest";
import { Screen } from "./screen.ts";

export interface PtyOptions {
  /** The whole environment; by default only TERM for an xterm. */
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  readonly rows?: number;
}

/** A command that runs in its own pseudo-terminal. */
export interface Pty {
  /** The raw output so far, with control codes and the echo of the input. */
  output(): string;
  /** The text on the screen now. */
  screen(): Screen;
  /** Types like a keyboard: `\r` for Enter, `\x03` for Ctrl-C, `\x04` for the end of the input. */
  write(text: string): void;
  /** Waits until the pattern is found in {@link output}. */
  waitFor(pattern: string | RegExp): Promise<void>;
  /** Resolves at the end; 128 plus the number of the signal if one ended it. */
  readonly exitCode: Promise<number | null>;
}

const STANDARD_SIZE = { columns: 100, rows: 30 };

/**
 * Starts a command in a pseudo-terminal, by `script` (util-linux; on macOS its own). It is killed at the end
 * of the test if it still runs then.
 */
export function startInPty(
  command: string,
  args: readonly string[],
  { env = {}, ...size }: PtyOptions = {},
): Pty {
  const { columns, rows } = { ...STANDARD_SIZE, ...size };
  const line = `stty cols ${columns} rows ${rows}; exec ${[command, ...args].map(quoted).join(" ")}`;
  const words =
    process.platform === "darwin"
      ? ["-q", "/dev/null", "/bin/sh", "-c", line]
      : ["-q", "-e", "-c", line, "/dev/null"];
  const child = spawn("script", words, {
    env: { PATH: "/usr/bin:/bin", SHELL: "/bin/sh", TERM: "xterm-256color", ...env },
    stdio: "pipe",
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    // A character may arrive in two chunks.
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  // Input after the end is dropped.
  child.stdin.on("error", () => undefined);
  const ended = new AbortController();
  const exitCode = new Promise<number | null>((resolve) => {
    child.once("close", (code) => {
      ended.abort(new Error(`the command has ended: ${output}`));
      resolve(code);
    });
  });
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await exitCode;
  });
  const has = (pattern: string | RegExp) =>
    typeof pattern === "string" ? output.includes(pattern) : pattern.test(output);
  return {
    output: () => output,
    screen: () => Screen.of(output, columns),
    write: (text) => child.stdin.write(text),
    async waitFor(pattern) {
      if (has(pattern)) return;
      await waitFor(() => has(pattern) && output, {
        what: `${pattern} on the terminal`,
        signal: ended.signal,
      });
    },
    exitCode,
  };
}

/** Columns of the longest line in the output, before the terminal wraps lines. */
export function widest(pty: Pty): number {
  const lines = stripVTControlCharacters(pty.output()).split(/\r?\n/);
  return Math.max(...lines.map(({ length }) => length));
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
