import { Command, CommanderError } from "commander";
import { UsageError } from "../settings/option.ts";
import { type CommandDefinition, capitalized, fullName, GROUPS, PROGRAM } from "./command.ts";
import { candidateLines } from "./completion/candidates.ts";
import { EXIT_CODES, EXIT_DONE, EXIT_FAILURE, EXIT_USAGE } from "./exit-codes.ts";
import { sentenceFor } from "./failure.ts";
import { Interruption, type Io } from "./io.ts";

export interface ProgramSpec {
  readonly version: string;
  readonly commands: readonly CommandDefinition[];
}

/** Hidden command of the completion scripts, followed by `--` and the words of the command line. */
const COMPLETE = "__complete";

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
  if (words[0] === COMPLETE) {
    for (const line of candidateLines(spec.commands, words.slice(2))) io.out(`${line}\n`);
    return EXIT_DONE;
  }
  try {
    requireKnownPlace(spec, words);
    const root = program(spec, io, (code) => {
      exitCode = code;
    });
    await root.parseAsync(withHelp(spec, words), { from: "user" });
    return exitCode;
  } catch (error) {
    // It has said what it had to say. Asking for help is no error; getting it for want of a command is.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_DONE : EXIT_USAGE;
    if (error instanceof UsageError) {
      io.err(`${error.message}\nSee ${[PROGRAM, ...commandWords(spec.commands, words)].join(" ")} --help.\n`);
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
    .showHelpAfterError(`See ${PROGRAM} --help.`)
    .configureHelp({ helpWidth: 110, showGlobalOptions: false, subcommandTerm: termOf })
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => write(sentence(text)),
    })
    .addHelpText("after", EPILOGUE);
  for (const command of spec.commands) {
    const words = command.name.split(" ");
    command.addTo(groupOf(root, words.slice(0, -1)), io, ended);
    groupOf(root, words.slice(0, 1)).helpGroup(command.section ?? OTHERS);
  }
  return root;
}

/** The command of these words, which has others below it. */
function groupOf(root: Command, words: readonly string[]): Command {
  const name = words.at(-1);
  if (name === undefined) return root;
  const parent = groupOf(root, words.slice(0, -1));
  const known = parent.commands.find((each) => each.name() === name);
  if (known) return known;
  const summary = GROUPS[words.join(" ")] ?? "";
  const group = parent
    .command(name)
    .summary(summary)
    .description(`${capitalized(summary)}.`);
  return group.showHelpAfterError(`See ${fullName(group)} --help.`);
}

/**
 * Names the whole command if its first word was left out: commander would suggest `organizations` for
 * `organization create`, which is another command.
 */
function requireKnownPlace({ commands }: ProgramSpec, words: readonly string[]): void {
  const names = commands.map(({ name }) => name.split(" "));
  const [given] = words;
  if (names.some(([first]) => first === given)) return;
  const [first = ""] = names.find(([, second, third]) => third !== undefined && second === given) ?? [];
  if (first === "") return;
  const meant = commandWords(commands, [first, ...words]).join(" ");
  throw new UsageError(`Unknown command '${given}'. Did you mean ${PROGRAM} ${meant}?`);
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

/** `help admin key create` is `admin key create --help`: commander's own help knows only the first word. */
function withHelp(spec: ProgramSpec, words: readonly string[]): string[] {
  const [first, ...rest] = words;
  const named = first === "help" ? commandWords(spec.commands, rest) : [];
  return named.length === 0 ? [...words] : [...named, "--help"];
}

/** Those of the words that name a command, or several. */
function commandWords(commands: readonly CommandDefinition[], words: readonly string[]): readonly string[] {
  const isKnown = (count: number) =>
    commands.some(({ name }) => `${name} `.startsWith(`${words.slice(0, count).join(" ")} `));
  const unknown = words.findIndex((_, at) => !isKnown(at + 1));
  return unknown < 0 ? words : words.slice(0, unknown);
}

export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
