import type { Environment } from "../settings/option.ts";

/** Input, output, environment and signals of a command: those of the process (process-io.ts), or of a test. */
export interface Io {
  readonly env: Environment;
  /** The program as people type it, for help and messages: `pipe-scaling`, or `kubectl pipes`. */
  readonly program: string;
  /** Writes the result, and nothing else, because programs read it. */
  readonly out: (text: string) => void;
  /** Writes messages for people. */
  readonly err: (text: string) => void;
  readonly terminal: Terminal;
  /** Asks on standard error and returns a line from standard input; `undefined` at its end. */
  ask(question: string): Promise<string | undefined>;
  /** Asks like `ask`, but does not echo the input. */
  askSecret(question: string): Promise<string | undefined>;
  /**
   * Aborted, with an {@link Interruption}, by the first SIGINT or SIGTERM; the next one ends the process. If the
   * command has never read this property, the first signal ends the process.
   */
  readonly signal: AbortSignal;
}

export interface Terminal {
  /** Standard input is a terminal, so that a person can answer questions. */
  readonly input: boolean;
  /** Standard output is a terminal that can redraw lines. */
  readonly output: boolean;
  /** Current width of the output. */
  columns(): number;
  /** Current height of the output. */
  rows(): number;
  /** Standard output may have colors. */
  readonly colors: boolean;
}

/** A signal that asks the command to end. */
export class Interruption extends Error {
  override readonly name = "Interruption";
  readonly exitCode: number;

  constructor(signal: string, exitCode: number) {
    super(`ended by ${signal}`);
    this.exitCode = exitCode;
  }

  /** Returns the error or its cause if that is an interruption, otherwise `undefined`. */
  static of(error: unknown): Interruption | undefined {
    if (error instanceof Interruption) return error;
    return error instanceof Error && error.cause !== undefined ? Interruption.of(error.cause) : undefined;
  }
}
