import type { Command } from "commander";
import {
  argumentTerm,
  type DeclaredOption,
  declaredOptions,
  hyphenated,
  type Options,
  readOptions,
  UsageError,
  type Values,
  withoutUnit,
} from "../settings/option.ts";
import { EXIT_DONE } from "./exit-codes.ts";
import type { Io } from "./io.ts";

export interface CommandText {
  /** All words of the command, such as `admin key create`. */
  readonly name: string;
  readonly summary: string;
  /** More text for the help. */
  readonly details?: string;
  /** Command lines without the program; by default the command with `<uuid>` for each argument. */
  readonly examples?: readonly string[];
}

/** @template Context what `run` gets before the values, such as a connection */
export interface CommandSpec<O extends Options, Context extends unknown[] = []> extends CommandText {
  /** The arguments, in the order of the command line, and the options. */
  readonly options: O;
  /** Throws UsageError for values that do not fit together. It is called before `run`. */
  check?(values: Values<O>): void;
  /** @returns the exit code, where that is not 0 (exit-codes.ts) */
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands return nothing, which is 0
  run(...args: [...Context, values: Values<O>, io: Io]): Promise<number | void>;
}

/** A command, and all that is declared about it: its help, its completion and its reference come from here. */
export interface CommandDefinition extends CommandText {
  readonly examples: readonly string[];
  readonly arguments: readonly DeclaredOption[];
  readonly options: readonly DeclaredOption[];
  /** Heading of the help under which the command is listed. */
  readonly section?: string;
  /** Adds the command to its parent. `ended` is called with the exit code, unless the command throws. */
  addTo(parent: Command, io: Io, ended: (exitCode: number) => void): Command;
}

/** Puts the commands under one heading of the help. */
export function section(heading: string, ...commands: readonly CommandDefinition[]): CommandDefinition[] {
  return commands.map((command) => ({ ...command, section: heading }));
}

/** Summaries of the command groups, by the words with which their commands begin. */
export const GROUPS: Readonly<Record<string, string>> = {
  admin: "manage organizations, services, members and API keys",
  "admin organization": "manage organizations",
  "admin service": "manage services, and roll back their size",
  "admin member": "manage the members of an organization",
  "admin key": "manage API keys, and rotate their secrets",
  backup: "show and change the backup settings of a service",
  scaling: "show and change the size of a service's pipes, and show its limits and history",
  profile: "manage profiles: addresses of APIs with keys",
  members: "list and remove members of the organization",
};

export const PROGRAM = "pipe-scaling";
/** The kubectl plugin: the same program, with the commands that use a kubeconfig. */
export const KUBECTL_PLUGIN = "kubectl pipes";

export function defineCommand<O extends Options>(spec: CommandSpec<O>): CommandDefinition;
export function defineCommand(spec: CommandSpec<Options>): CommandDefinition {
  const { name, summary } = spec;
  const declared = declaredOptions(spec.options);
  const args = declared.filter(({ argument }) => argument);
  const options = declared.filter(({ argument }) => !argument);
  const examples = spec.examples ?? [[name, ...args.map(() => "<uuid>")].join(" ")];
  return {
    ...spec,
    examples,
    arguments: args,
    options,
    addTo(parent, io, ended) {
      const command = parent.command(name.replace(/.* /, "")).summary(summary).description(describe(spec));
      command.showHelpAfterError(`See ${io.program} ${name} --help.`);
      command.usage(["[options]", ...args.map(argumentTerm)].join(" "));
      // Optional for commander, so that our own error reports a missing argument.
      for (const { key, description } of args) command.argument(`[${hyphenated(key)}]`, description);
      for (const each of options) addOption(command, each);
      return command
        .addHelpText("after", variables(options) + examplesText(io.program, examples))
        .action(async (...given: unknown[]) => {
          const words = Object.fromEntries(args.map(({ key }, at) => [withoutUnit(key), given[at]]));
          try {
            const values = readOptions(spec.options, textsOf({ ...words, ...givenOptions(command) }), io.env);
            spec.check?.(values);
            ended((await spec.run(values, io)) ?? EXIT_DONE);
          } catch (error) {
            if (error instanceof UsageError) command.error(error.message);
            throw error;
          }
        });
    },
  };
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function describe({ summary, details }: CommandText): string {
  const sentence = `${capitalized(summary)}.`;
  return details === undefined ? sentence : `${sentence}\n\n${details}`;
}

/** Returns the part of the help about options without a flag. */
function variables(options: readonly DeclaredOption[]): string {
  const lines = options
    .filter(({ flag }) => flag === undefined)
    .map(({ variable, description, required }) => {
      return `  ${variable}  ${description}${required ? " (required)" : ""}`;
    });
  return lines.length === 0 ? "" : ["", "Variables without a flag:", ...lines, ""].join("\n");
}

function examplesText(program: string, lines: readonly string[]): string {
  return ["", "Examples:", ...lines.map((line) => `  ${program} ${line}`)].join("\n");
}

/** Commander only collects the texts of the flags; `readOptions` validates and converts them. */
export function addOption(command: Command, declared: DeclaredOption): void {
  const { list } = declared;
  const term = optionTerm(declared);
  if (term === undefined) return;
  command.option(term, helpText(declared), (value: string, previous: string | undefined) =>
    list && previous !== undefined ? `${previous},${value}` : value,
  );
}

/** Returns an option as the help lists it, such as `-n, --namespace <name>`; `undefined` for one without a flag. */
export function optionTerm({ flag, short, placeholder }: DeclaredOption): string | undefined {
  if (flag === undefined) return undefined;
  const flags = short === undefined ? flag : `${short}, ${flag}`;
  return placeholder === undefined ? flags : `${flags} <${placeholder}>`;
}

/** Returns the options given to a command and to the groups above it, whose options come before its name. */
function givenOptions(command: Command): Record<string, unknown> {
  return { ...(command.parent ? givenOptions(command.parent) : {}), ...command.opts() };
}

function helpText({ description, list, required, variable, ...option }: DeclaredOption): string {
  const notes = [
    ...(required ? ["required"] : []),
    ...(list ? ["separated by commas, or repeated"] : []),
    ...(option.default === undefined ? [] : [`default: ${option.default}`]),
    ...(variable === undefined ? [] : [variable]),
  ];
  return notes.length === 0 ? description : `${description} (${notes.join("; ")})`;
}

function textsOf(values: Readonly<Record<string, unknown>>): Record<string, string> {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([key, value]) => [key, String(value)]));
}
