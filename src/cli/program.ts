import { Command, CommanderError } from "commander";
import { declaredOptions, type Options } from "../settings/option.ts";
import { addOption, type CommandDefinition, capitalized, GROUPS } from "./command.ts";
import { candidateLines, cobraLines } from "./completion/candidates.ts";
import { EXIT_CODES, EXIT_DONE, EXIT_FAILURE, EXIT_USAGE } from "./exit-codes.ts";
import { sentenceFor } from "./failure.ts";
import { Interruption, type Io } from "./io.ts";

export interface ProgramSpec {
  readonly version: string;
  readonly description: string;
  readonly commands: readonly CommandDefinition[];
  /** Options of all commands. They may also come before the name of the command. */
  readonly commonOptions?: Options;
  /** Completion prints what kubectl expects from a plugin. */
  readonly isKubectlPlugin?: boolean;
}

/** Hidden command of the completion scripts, followed by `--` and the words of the command line. */
const COMPLETE = "__complete";

const EPILOGUE = `
Many flags are also environment variables, which the help of a command names: --namespace is
PIPE_SCALING_NAMESPACE. The flag wins, and an empty variable counts as not set.

Exit codes:
${EXIT_CODES.map(([code, meaning]) => `  ${String(code).padStart(3)}  ${meaning}`).join("\n")}`;

/** Runs the command that the words name, and returns the exit code. */
export async function runProgram(spec: ProgramSpec, words: readonly string[], io: Io): Promise<number> {
  const [first, ...rest] = words;
  if (first === COMPLETE) {
    printCandidates(spec, words.slice(2), io);
    return EXIT_DONE;
  }
  let exitCode = EXIT_DONE;
  const root = program(spec, io, (code) => {
    exitCode = code;
  });
  try {
    // The help command of commander knows only the first word of a command.
    const isHelp = first === "help";
    if (isHelp && !spec.commands.some(({ name }) => isNamed(name.split(" "), rest)))
      root.error(`error: unknown command '${rest.join(" ")}'`);
    await root.parseAsync(isHelp ? [...rest, "--help"] : words, { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has printed the error or the help. Help that was requested is no error; help that commander prints
    // because a command is missing is one.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_DONE : EXIT_USAGE;
    const interruption = Interruption.of(error);
    if (interruption) {
      io.err("Interrupted.\n");
      return interruption.exitCode;
    }
    io.err(`${sentenceFor(error) ?? stackOf(error)}\n`);
    return EXIT_FAILURE;
  }
}

/** True if the words name this command, with or without arguments, or a group that contains it. */
function isNamed(name: readonly string[], words: readonly string[]): boolean {
  return name.every((word, index) => word === (words[index] ?? word) || words[index]?.startsWith("-"));
}

function printCandidates(spec: ProgramSpec, words: readonly string[], io: Io): void {
  const lines = candidateLines(spec, words, io.env);
  for (const line of spec.isKubectlPlugin ? cobraLines(lines) : lines) io.out(`${line}\n`);
}

function program(spec: ProgramSpec, io: Io, ended: (exitCode: number) => void): Command {
  const root = new Command(io.program)
    .description(spec.description)
    .version(spec.version, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [command]", "print the help of a command")
    .exitOverride()
    .enablePositionalOptions()
    .showHelpAfterError(`See ${io.program} --help.`)
    .configureHelp({ helpWidth: 110, showGlobalOptions: false, subcommandTerm: termOf })
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => write(sentence(text)),
    })
    .addHelpText("after", EPILOGUE);
  const common = declaredOptions(spec.commonOptions ?? {});
  for (const option of common) addOption(root, option);

  /** Returns the command group with these words, and creates it if necessary; the root for no words. */
  function groupOf(words: readonly string[]): Command {
    const name = words.at(-1);
    if (name === undefined) return root;
    const parent = groupOf(words.slice(0, -1));
    const known = parent.commands.find((each) => each.name() === name);
    if (known) return known;
    const summary = GROUPS[words.join(" ")] ?? "";
    const group = parent
      .command(name)
      .summary(summary)
      .description(`${capitalized(summary)}.`)
      .showHelpAfterError(`See ${[io.program, ...words].join(" ")} --help.`);
    for (const option of common) addOption(group, option);
    return group;
  }

  for (const command of spec.commands) {
    const words = command.name.split(" ");
    command.addTo(groupOf(words.slice(0, -1)), io, ended);
    if (command.section) groupOf(words.slice(0, 1)).helpGroup(command.section);
  }
  return root;
}

/** Returns a command with its arguments, as the help lists it. */
function termOf(command: Command): string {
  const isGroup = command.commands.length > 0;
  return [command.name(), isGroup ? "" : command.usage().replace("[options]", "").trim()].join(" ").trim();
}

/**
 * Commander writes "error: unknown option '--prot'", and on the next line "(Did you mean --port?)". The values of an
 * unknown option and of excess arguments are left out: a secret can be among them.
 */
function sentence(text: string): string {
  return text
    .replace(/^(error: unknown option '[^'=]*)=.*'/s, "$1'")
    .replace(/^(error: too many arguments.* but got \d+): .*/s, "$1.\n")
    .replace(/^error: (.)/, (_, letter: string) => letter.toUpperCase())
    .replace(/\n\((Did you mean .*\?)\)/, ". $1")
    .replace(/([^.?\s])\s*$/, "$1.\n");
}

export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
