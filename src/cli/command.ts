import { type Command, InvalidArgumentError, Option } from "commander";
import type * as z from "zod";
import { type DeclaredOption, declaredOptions, type Environment, readOptions } from "./option.ts";

/** The world of a command; the process's own, or a test's. */
export interface Io {
  readonly env: Environment;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

interface CommandSpec<S extends z.ZodObject> {
  readonly name: string;
  readonly summary: string;
  /** What else a reader of its help should know. */
  readonly details?: string;
  /** Words after the program's name. */
  readonly examples: readonly string[];
  readonly options: S;
  run(values: z.output<S>, io: Io): Promise<void>;
}

/** Adds the command to its parent. */
export type CommandDefinition = (parent: Command, io: Io) => Command;

export const PROGRAM = "pipe-scaling";

export function defineCommand<S extends z.ZodObject>(spec: CommandSpec<S>): CommandDefinition {
  return (parent, io) => {
    const command = parent.command(spec.name).summary(spec.summary).description(describe(spec));
    command.showHelpAfterError(`Ask ${fullName(command)} --help for what is allowed.`);
    for (const declared of declaredOptions(spec.options)) command.addOption(commanderOption(declared));
    return command
      .addHelpText("after", examples(spec.examples))
      .action((flags: Record<string, unknown>) =>
        spec.run(readOptions(spec.options, flagTexts(flags), io.env), io),
      );
  };
}

function fullName(command: Command): string {
  return command.parent ? `${fullName(command.parent)} ${command.name()}` : command.name();
}

export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function describe({ summary, details }: CommandSpec<z.ZodObject>): string {
  const sentence = `${capitalized(summary)}.`;
  return details === undefined ? sentence : `${sentence}\n\n${details}`;
}

function examples(lines: readonly string[]): string {
  return ["", "Examples:", ...lines.map((line) => `  ${PROGRAM} ${line}`)].join("\n");
}

/** Commander only finds the flags; what they mean is read from the declaration (option.ts). */
function commanderOption(declared: DeclaredOption): Option {
  const { flag, placeholder, list } = declared;
  const flags = placeholder === undefined ? flag : `${flag} <${placeholder}>`;
  return new Option(flags, helpText(declared)).argParser((value, previous: string | undefined) => {
    if (previous === undefined) return value;
    if (list) return `${previous},${value}`;
    throw new InvalidArgumentError("It is there twice.");
  });
}

function helpText({ description, list, required, variable, ...option }: DeclaredOption): string {
  const notes = [
    ...(required ? ["required"] : []),
    ...(list ? ["repeatable"] : []),
    ...(option.default === undefined ? [] : [`default: ${option.default}`]),
    variable,
  ];
  return `${description} (${notes.join("; ")})`;
}

function flagTexts(flags: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(flags).map(([key, value]) => [key, String(value)]));
}
