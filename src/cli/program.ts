import { Command, CommanderError } from "commander";
import { UsageError } from "../settings/option.ts";
import { type CommandDefinition, type CommandGroup, capitalized, PROGRAM } from "./command.ts";
import { EXIT_CODES, EXIT_DONE, EXIT_FAILURE, EXIT_USAGE } from "./exit-codes.ts";
import { sentenceFor } from "./failure.ts";
import { Interruption, type Io } from "./io.ts";

export interface ProgramSpec {
  readonly version: string;
  readonly commands: readonly CommandDefinition[];
  readonly groups: readonly CommandGroup[];
}

/** Heading of commands that have none of their own. */
const OTHERS = "Commands:";

const EPILOGUE = `
Flags are also environment variables: --ops-port is PIPE_SCALING_OPS_PORT. The flag wins, and an empty
variable counts as not set. What an update is to change, and --watch, must be flags.

Exit codes:
${EXIT_CODES.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join("\n")}`;

/** Runs the command that the words name, and returns the exit code. */
export async function runProgram(spec: ProgramSpec, words: readonly string[], io: Io): Promise<number> {
  let exitCode = EXIT_DONE;
  try {
    const root = program(spec, io, (code) => {
      exitCode = code;
    });
    await root.parseAsync(withHelp(spec, words), { from: "user" });
    return exitCode;
  } catch (error) {
    // It has said what it had to say. Asking for help is no error; getting it for want of a command is.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_DONE : EXIT_USAGE;
    if (error instanceof UsageError) {
      io.err(
        `${error.message}\nAsk ${[PROGRAM, ...commandWords(spec, words)].join(" ")} --help for what is allowed.\n`,
      );
      return EXIT_USAGE;
    }
    const interruption = Interruption.of(error);
    if (interruption) {
      io.err("Interrupted.\n");
      return interruption.exitCode;
    }
    io.err(`${sentenceFor(error) ?? stackOf(error)}\n`);
    return EXIT_FAILURE;
  }
}

function program(spec: ProgramSpec, io: Io, ended: (exitCode: number) => void): Command {
  const root = new Command(PROGRAM)
    .description(
      "Resizes the change-data-capture pipes of a service on Kubernetes: the two processes of the operator, and what people do with it.",
    )
    .version(spec.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .exitOverride()
    .showHelpAfterError(`Ask ${PROGRAM} --help for what is allowed.`)
    .configureHelp({ helpWidth: 110, showGlobalOptions: false, subcommandTerm: termOf })
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => write(sentence(text)),
    })
    .addHelpText("after", EPILOGUE);
  for (const command of spec.commands) {
    command.addTo(root, io, ended).helpGroup(command.section ?? OTHERS);
  }
  for (const group of spec.groups) {
    const parent = root
      .command(group.name)
      .summary(group.summary)
      .description(`${capitalized(group.summary)}.`)
      .helpGroup(group.section ?? OTHERS);
    parent.showHelpAfterError(`Ask ${PROGRAM} ${group.name} --help for what is allowed.`);
    for (const command of group.commands) command.addTo(parent, io, ended);
  }
  return root;
}

/** A command with its arguments, as a list of commands has it. */
function termOf(command: Command): string {
  const isGroup = command.commands.length > 0;
  return [command.name(), isGroup ? "" : command.usage().replace("[options]", "").trim()].join(" ").trim();
}

/** Commander's "error: unknown option '--prot'", with its suggestion on the same line. */
function sentence(text: string): string {
  const [first = "", ...rest] = text
    .replace(/^error: /, "")
    .trim()
    .split("\n");
  return `${[capitalized(first), ...rest].join(" ")}\n`;
}

/** `help key create` is `key create --help`: commander's own help knows no more than the first word. */
function withHelp(spec: ProgramSpec, words: readonly string[]): string[] {
  const [first, ...rest] = words;
  const named = first === "help" ? commandWords(spec, rest) : [];
  return named.length === 0 ? [...words] : [...named, "--help"];
}

/** Those of the words that name a command. */
function commandWords({ commands, groups }: ProgramSpec, [first, second]: readonly string[]): string[] {
  const group = groups.find(({ name }) => name === first);
  const ofFirst = (group ? [group] : commands).filter(({ name }) => name === first);
  const ofSecond = (group?.commands ?? []).filter(({ name }) => name === second);
  return [...ofFirst, ...ofSecond].map(({ name }) => name);
}

export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
