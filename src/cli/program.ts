import { Command, CommanderError } from "commander";
import { type CommandDefinition, capitalized, type Io, PROGRAM } from "./command.ts";
import { sentenceFor } from "./failure.ts";
import { UsageError } from "./option.ts";

export const EXIT_FAILURE = 1;
export const EXIT_USAGE = 2;

/** Commands under a word of their own: `organization create`, `organization list`. */
export interface CommandGroup {
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly CommandDefinition[];
}

export interface ProgramSpec {
  readonly version: string;
  readonly commands: readonly CommandDefinition[];
  readonly groups: readonly CommandGroup[];
}

const EPILOGUE = `
Every flag is also an environment variable: --ops-port is PIPE_SCALING_OPS_PORT. The flag wins, and an
empty variable counts as not set.

Exit codes: 0 done; 1 it failed, and a sentence on standard error says why; 2 the command line is wrong.`;

/** Runs the command that the words name, and returns the exit code. */
export async function runProgram(spec: ProgramSpec, words: readonly string[], io: Io): Promise<number> {
  try {
    await program(spec, io).parseAsync([...words], { from: "user" });
    return 0;
  } catch (error) {
    // It has said what it had to say. Asking for help is no error; getting it for want of a command is.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
    if (error instanceof UsageError) {
      io.err(`${error.message}\nAsk ${PROGRAM} ${commandWords(words)} --help for what is allowed.\n`);
      return EXIT_USAGE;
    }
    io.err(`${sentenceFor(error) ?? stackOf(error)}\n`);
    return EXIT_FAILURE;
  }
}

function program(spec: ProgramSpec, io: Io): Command {
  const root = new Command(PROGRAM)
    .description(
      "Resizes the change-data-capture pipes of a service on Kubernetes: the two processes of the operator, and the records that they work by.",
    )
    .version(spec.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .exitOverride()
    .showHelpAfterError(`Ask ${PROGRAM} --help for what is allowed.`)
    .configureHelp({ helpWidth: 110, showGlobalOptions: false })
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => write(sentence(text)),
    })
    .addHelpText("after", EPILOGUE);
  for (const define of spec.commands) define(root, io);
  for (const group of spec.groups) {
    const parent = root
      .command(group.name)
      .summary(group.summary)
      .description(`${capitalized(group.summary)}.`);
    for (const define of group.commands) define(parent, io);
  }
  return root;
}

/** Commander's "error: unknown option '--prot'", with its suggestion on the same line. */
function sentence(text: string): string {
  const [first = "", ...rest] = text
    .replace(/^error: /, "")
    .trim()
    .split("\n");
  return `${[capitalized(first), ...rest].join(" ")}\n`;
}

function commandWords(words: readonly string[]): string {
  const end = words.findIndex((word) => word.startsWith("-"));
  return words.slice(0, end === -1 ? words.length : end).join(" ");
}

export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
