import type { Environment } from "../../settings/option.ts";
import { type CommandDefinition, GROUPS } from "../command.ts";

/** Printed in place of candidates if the shell should complete the name of a file. */
export const FILES = ":files";

/** A word that can come next, and its description. */
type Candidate = readonly [word: string, description: string];

const HELP: Candidate = ["--help", "print the help"];

/**
 * The lines that a completion script reads: one candidate each, with its description after a tab.
 *
 * @param words of the command line after the program, the last one being the one to complete
 */
export function candidateLines(
  commands: readonly CommandDefinition[],
  words: readonly string[],
  env: Environment,
): string[] {
  // bash takes --flag=value for three words.
  const split = words.flatMap((word) => (/^--[^=]+=/.test(word) ? word.split(/=(.*)/s, 2) : [word]));
  const given = split.filter((word, at) => word !== "=" || at === split.length - 1);
  const current = (given.pop() ?? "").replace(/^=$/, "");
  const candidates = candidatesAfter(commands, given, current, env);
  if (candidates === FILES) return [FILES];
  return candidates.filter(([word]) => word.startsWith(current)).map((each) => each.join("\t"));
}

function candidatesAfter(
  commands: readonly CommandDefinition[],
  given: readonly string[],
  current: string,
  env: Environment,
): readonly Candidate[] | typeof FILES {
  const words = given.map((word) => `${word} `).join("");
  const command = commands.find(({ name }) => words.startsWith(`${name} `));
  if (command) return candidatesOf(command, given.slice(command.name.split(" ").length), current, env);
  const next = commands.flatMap(({ name, summary }): Candidate[] => {
    const [word = ""] = name.startsWith(words) ? name.slice(words.length).split(" ") : [];
    return word === "" ? [] : [[word, GROUPS[words + word] ?? summary]];
  });
  return next.length === 0 || !current.startsWith("-") ? [...new Map(next)] : [HELP];
}

function candidatesOf(
  { options, arguments: args }: CommandDefinition,
  given: readonly string[],
  current: string,
  env: Environment,
): readonly Candidate[] | typeof FILES {
  const option = options.find(({ flag }) => flag !== undefined && flag === given.at(-1));
  if (option?.placeholder === "file" || option?.placeholder === "folder") return FILES;
  const isValue = option?.placeholder !== undefined;
  // Only the first argument of a command ever has a short list of values.
  const [argument] = given.length === 0 && !current.startsWith("-") ? args : [];
  const { choices, complete, description = "" } = (isValue ? option : argument) ?? {};
  const values = choices ?? complete?.(env) ?? [];
  if (values.length > 0) return values.map((word) => [word, description]);
  if (isValue) return [];
  const flags = options.flatMap((each): Candidate[] => (each.flag ? [[each.flag, each.description]] : []));
  return [...flags, HELP];
}
