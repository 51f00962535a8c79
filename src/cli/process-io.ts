import { writeSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { isatty } from "node:tty";
import type { Environment } from "../settings/option.ts";
import { EXIT_BROKEN_PIPE, EXIT_FAILURE, EXIT_INTERRUPTED, EXIT_TERMINATED } from "./exit-codes.ts";
import { Interruption, type Io } from "./io.ts";

const SIGNALS = [
  ["SIGINT", EXIT_INTERRUPTED],
  ["SIGTERM", EXIT_TERMINATED],
] as const;

/** Used if the terminal does not report its size. */
const COLUMNS = 80;
const ROWS = 24;

/** Terminal, signals and environment of this process. */
export function processIo(env: Environment, program: string): Io {
  const { stdout, stderr } = process;
  // A dumb terminal cannot redraw lines.
  const isTerminal = { input: isatty(0), output: isatty(1) && env["TERM"] !== "dumb" };
  let interruption: AbortSignal | undefined;

  async function ask(question: string, isHidden: boolean): Promise<string | undefined> {
    let answer: string | undefined;
    try {
      answer = await readLine(harmless(question), isHidden && isTerminal.input, io.signal);
      return answer;
    } finally {
      // Ends the line of the question: Enter was not pressed, or not echoed.
      if (isTerminal.input && (isHidden || answer === undefined)) stderr.write("\n");
    }
  }

  stdout.on("error", exitWithoutOutput);
  stderr.on("error", exitWithoutOutput);
  const io: Io = {
    env,
    program,
    out: (text) => stdout.write(text),
    err: (text) => stderr.write(harmless(text)),
    terminal: {
      ...isTerminal,
      columns: () => stdout.columns || COLUMNS,
      rows: () => stdout.rows || ROWS,
      colors: isTerminal.output && !env["NO_COLOR"],
    },
    ask: (question) => ask(question, false),
    askSecret: (question) => ask(question, true),
    /** Listens only once a command asks for it: without a listener the signal ends the process. */
    get signal() {
      interruption ??= interruptionOfProcess();
      return interruption;
    },
  };
  return io;
}

/** Messages contain names that others chose, which must not send control codes to the terminal. */
function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, " ");
}

function interruptionOfProcess(): AbortSignal {
  const controller = new AbortController();
  for (const [signal, exitCode] of SIGNALS) {
    const interrupt = () => controller.abort(new Interruption(signal, exitCode));
    process.on(signal, interrupt);
    // Without a listener, another signal ends the process.
    controller.signal.addEventListener("abort", () => process.off(signal, interrupt));
  }
  return controller.signal;
}

/** The next line of standard input; `undefined` at its end. */
async function readLine(
  question: string,
  isHidden: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({
    input: process.stdin,
    output: nowhere,
    terminal: isHidden,
  });
  // A terminal in raw mode sends Ctrl-C as a character.
  lines.on("SIGINT", () => process.kill(process.pid, "SIGINT"));
  try {
    const ended = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
    const answer = lines.question("", { signal });
    // The question is printed after raw mode is on, so that no character of a fast typist is echoed.
    process.stderr.write(question);
    return await Promise.race([answer, ended]);
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    lines.close();
  }
}

/** `pipe-scaling keys | head -1` reads only a part of the output. Other errors, such as a full disk, are failures. */
function exitWithoutOutput(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(EXIT_BROKEN_PIPE);
  writeSync(2, `The output cannot be written: ${error.message}.\n`);
  process.exit(EXIT_FAILURE);
}
