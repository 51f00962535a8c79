import type { Environment } from "../settings/option.ts";

/** The world of a command; the process's own (process-io.ts), or a test's. */
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
   * Aborted, with an {@link Interruption}, by the first SIGINT or SIGTERM; a second one ends the process. A
   * command that never looks at it is ended by the first.
   */
  readonly signal: AbortSignal;
}

export interface Terminal {
  /** Questions can be answered there. */
  readonly input: boolean;
  /** Lines can be rewritten there. */
  readonly output: boolean;
  /** Current width of the output. */
  columns(): number;
  /** Current height of the output. */
  rows(): number;
  /** Colours may be used on standard output. */
  readonly colors: boolean;
}

/** The person, or the system, wants the command to end. */
export class Interruption extends Error {
  override readonly name = "Interruption";
  readonly exitCode: number;

  constructor(signal: string, exitCode: number) {
    super(`ended by ${signal}`);
    this.exitCode = exitCode;
  }

  /** The interruption that an error is, or was caused by. */
  static of(error: unknown): Interruption | undefined {
    if (error instanceof Interruption) return error;
    return error instanceof Error && error.cause !== undefined ? Interruption.of(error.cause) : undefined;
  }
}
