import { writeSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { isatty } from "node:tty";
import type { Environment } from "../settings/option.ts";
import { EXIT_BROKEN_PIPE, EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_TERMINATED } from "./exit-codes.ts";
import { Interruption, type Io } from "./io.ts";
import { lineReader } from "./line-reader.ts";

const SIGNALS = [
  ["SIGINT", EXIT_INTERRUPTED],
  ["SIGTERM", EXIT_TERMINATED],
] as const;

/** Where a terminal does not tell its own size. */
const COLUMNS = 80;
const ROWS = 24;

/** The world of this process. */
export function processIo(env: Environment): Io {
  const { stdout, stderr } = process;
  // On one that calls itself dumb nothing can be drawn again.
  const isTerminal = { input: isatty(0), output: isatty(1) && env["TERM"] !== "dumb" };
  let interruption: AbortSignal | undefined;
  let readLine: ReturnType<typeof lineReader> | undefined;

  function signal(): AbortSignal {
    // Listens only once a command asks for it: without a listener the signal ends the process.
    interruption ??= interruptionOfProcess();
    return interruption;
  }

  function err(text: string): void {
    stderr.write(harmless(text));
  }

  async function ask(question: string): Promise<string | undefined> {
    // First of all: who is fast presses Ctrl-C as soon as the question is there.
    const interrupted = signal();
    err(question);
    readLine ??= lineReader(process.stdin);
    let answer: string | undefined;
    try {
      answer = await readLine(interrupted);
      return answer;
    } finally {
      // Nobody has pressed Enter: what is said next would stand behind the question.
      if (answer === undefined && isTerminal.input) stderr.write("\n");
    }
  }

  async function askSecret(question: string): Promise<string | undefined> {
    if (!isTerminal.input) return await ask(question);
    try {
      return await hiddenLine(() => err(question), signal());
    } finally {
      // The end of the line that was typed is not shown either.
      stderr.write("\n");
    }
  }

  stdout.on("error", endForWantOfOutput);
  stderr.on("error", endForWantOfOutput);
  return {
    env,
    out: (text) => stdout.write(text),
    err,
    terminal: {
      ...isTerminal,
      columns: () => stdout.columns || COLUMNS,
      rows: () => stdout.rows || ROWS,
      colors: isTerminal.output && !env["NO_COLOR"],
    },
    ask,
    askSecret,
    get signal() {
      return signal();
    },
  };
}

/** Sentences name what others have named: it must not move the cursor, nor tell the terminal anything else. */
function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, " ");
}

function interruptionOfProcess(): AbortSignal {
  const controller = new AbortController();
  for (const [signal, exitCode] of SIGNALS) {
    process.once(signal, () => controller.abort(new Interruption(signal, exitCode)));
  }
  return controller.signal;
}

/**
 * A line of the terminal, which does not show it.
 *
 * @param ask is called once nothing is shown any more: who answers fast is not shown either
 */
async function hiddenLine(ask: () => void, signal: AbortSignal): Promise<string | undefined> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  // The terminal is in raw mode, in which Ctrl-C is a character.
  lines.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    const ended = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
    const answer = lines.question("", { signal });
    ask();
    return await Promise.race([answer, ended]);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    lines.close();
  }
}

/** Of `pipe-scaling admin key list | head -1` the rest is not wanted; anything else, such as a full disk, is a failure. */
function endForWantOfOutput(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(EXIT_BROKEN_PIPE);
  writeSync(2, `The output cannot be written: ${error.message}.\n`);
  process.exit(EXIT_FAILURE);
}
