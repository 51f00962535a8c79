import {
  type DeclaredOption,
  declaredOptions,
  type Environment,
  type Options,
} from "../../settings/option.ts";
import { type CommandDefinition, GROUPS } from "../command.ts";

/** Printed in place of candidates if the shell should complete the name of a file. */
export const FILES = ":files";

/** A word that can come next, and its description. */
type Candidate = readonly [word: string, description: string];

const HELP: Candidate = ["--help", "print the help"];

export interface CompletedProgram {
  readonly commands: readonly CommandDefinition[];
  /** Options that may come before a command. */
  readonly commonOptions?: Options;
}

/**
 * The lines that a completion script reads: one candidate each, with its description after a tab.
 *
 * @param words of the command line after the program, the last one being the one to complete
 */
export function candidateLines(
  { commands, commonOptions = {} }: CompletedProgram,
  words: readonly string[],
  env: Environment,
): string[] {
  // bash passes --flag=value as three words, other shells as one. Here it becomes two: --flag and value.
  const split = words.flatMap((word) => (/^--[^=]+=/.test(word) ? word.split(/=(.*)/s, 2) : [word]));
  const given = split.filter((word, at) => word !== "=" || at === split.length - 1);
  const current = (given.pop() ?? "").replace(/^=$/, "");
  const candidates = candidatesAfter(commands, declaredOptions(commonOptions), given, current, env);
  if (candidates === FILES) return [FILES];
  return candidates.filter(([word]) => word.startsWith(current)).map((each) => each.join("\t"));
}

/**
 * The lines that kubectl reads from the completion of a plugin: the last one is a directive of cobra, the library of
 * its command line, after which the shell completes files (0) or nothing else (4).
 */
export function cobraLines(lines: readonly string[]): string[] {
  return lines[0] === FILES ? [":0"] : [...lines, ":4"];
}

function candidatesAfter(
  commands: readonly CommandDefinition[],
  common: readonly DeclaredOption[],
  given: readonly string[],
  current: string,
  env: Environment,
): readonly Candidate[] | typeof FILES {
  const option = common.find((each) => isFlag(each, given.at(-1)));
  if (option?.placeholder !== undefined) return valuesOf(option, env);
  const others = given.filter((word, at) => {
    const isValue = common.some((each) => each.placeholder !== undefined && isFlag(each, given[at - 1]));
    return !isValue && !common.some((each) => isFlag(each, word));
  });
  const words = others.map((word) => `${word} `).join("");
  const command = commands.find(({ name }) => words.startsWith(`${name} `));
  if (command) return candidatesOf(command, others.slice(command.name.split(" ").length), current, env);
  const next = commands.flatMap(({ name, summary }): Candidate[] => {
    const [word = ""] = name.startsWith(words) ? name.slice(words.length).split(" ") : [];
    return word === "" ? [] : [[word, GROUPS[words + word] ?? summary]];
  });
  return next.length === 0 || !current.startsWith("-") ? [...new Map(next)] : [...flagsOf(common), HELP];
}

function isFlag({ flag, short }: DeclaredOption, word: string | undefined): boolean {
  return word !== undefined && (word === flag || word === short);
}

function flagsOf(options: readonly DeclaredOption[]): Candidate[] {
  return options.flatMap(({ flag, description }): Candidate[] => (flag ? [[flag, description]] : []));
}

/** Returns the values of an option or argument that a shell can offer. */
function valuesOf(
  { placeholder, choices, complete, description }: DeclaredOption,
  env: Environment,
): readonly Candidate[] | typeof FILES {
  if (placeholder === "file" || placeholder === "folder") return FILES;
  const values = choices ?? complete?.(env) ?? [];
  return values.map((word) => [word, description]);
}

function candidatesOf(
  { options, arguments: args }: CommandDefinition,
  given: readonly string[],
  current: string,
  env: Environment,
): readonly Candidate[] | typeof FILES {
  const option = options.find((each) => isFlag(each, given.at(-1)));
  if (option?.placeholder !== undefined) return valuesOf(option, env);
  // Only the first argument of a command ever has a short list of values.
  const [argument] = given.length === 0 && !current.startsWith("-") ? args : [];
  const values = argument ? valuesOf(argument, env) : [];
  return values.length > 0 ? values : [...flagsOf(options), HELP];
}
