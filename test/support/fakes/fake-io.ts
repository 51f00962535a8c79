import { PROGRAM } from "../../../src/cli/command.ts";
import type { Io, Terminal } from "../../../src/cli/io.ts";

export interface FakeIo extends Io {
  /** The output so far. */
  readonly written: { out: string; err: string };
}

interface Given extends Partial<Terminal> {
  readonly env?: Io["env"];
  readonly program?: string;
  /** The answers typed at the terminal, in order. */
  readonly answers?: readonly string[];
  /** Runs while a question waits for its answer. */
  readonly beforeAnswer?: () => Promise<void>;
  readonly signal?: AbortSignal;
}

/** The input and output of a command, by default without a terminal. */
export function fakeIo({
  env = {},
  program = PROGRAM,
  answers = [],
  beforeAnswer,
  signal,
  ...terminal
}: Given = {}): FakeIo {
  const written = { out: "", err: "" };
  const left = [...answers];
  const err = (text: string) => {
    written.err += text;
  };
  const ask = async (question: string) => {
    err(question);
    await beforeAnswer?.();
    return left.shift();
  };
  return {
    written,
    env,
    program,
    out: (text) => {
      written.out += text;
    },
    err,
    terminal: { input: false, output: false, colors: false, columns: () => 80, rows: () => 24, ...terminal },
    ask,
    askSecret: ask,
    signal: signal ?? new AbortController().signal,
  };
}
