import type { DeclaredOption } from "../../settings/option.ts";
import { type CommandDefinition, type CommandNode, isGroup } from "../command.ts";

/** Printed in place of candidates if the shell should complete the name of a file. */
export const FILES = ":files";

/** A word that can come next, and its description. */
type Candidate = readonly [word: string, description: string];

const HELP: Candidate = ["--help", "print the help"];
const VERSION: Candidate = ["--version", "print the version"];

/**
 * The lines that a completion script reads: one candidate each, with its description after a tab.
 *
 * @param words of the command line after the program, the last one being the one to complete
 */
export function candidateLines(commands: readonly CommandNode[], words: readonly string[]): string[] {
  // bash takes --flag=value for three words.
  const split = words.flatMap((word) => (/^--[^=]+=/.test(word) ? word.split(/=(.*)/s, 2) : [word]));
  const given = split.filter((word, at) => word !== "=" || at === split.length - 1);
  const current = (given.pop() ?? "").replace(/^=$/, "");
  const candidates = candidatesAfter(commands, given, current);
  if (candidates === FILES) return [FILES];
  return candidates.filter(([word]) => word.startsWith(current)).map((each) => each.join("\t"));
}

function candidatesAfter(
  commands: readonly CommandNode[],
  given: readonly string[],
  current: string,
): readonly Candidate[] | typeof FILES {
  let nodes = commands;
  let flags = [VERSION, HELP];
  for (const [at, word] of given.entries()) {
    const node = nodes.find(({ name }) => name === word);
    if (node && !isGroup(node)) return candidatesOf(node, given.slice(at + 1), current);
    if (!node) return [];
    nodes = node.commands;
    flags = [HELP];
  }
  return current.startsWith("-") ? flags : nodes.map(({ name, summary }): Candidate => [name, summary]);
}

function candidatesOf(
  { options, arguments: args }: CommandDefinition,
  given: readonly string[],
  current: string,
): readonly Candidate[] | typeof FILES {
  const option = options.find(({ flag }) => flag !== undefined && flag === given.at(-1));
  if (option?.placeholder !== undefined) return valuesOf(option);
  // Only the first argument of a command has ever few values.
  const [{ choices = [], description = "" } = {}] = args;
  if (choices.length > 0 && !current.startsWith("-"))
    return given.length > 0 ? [] : withText(choices, description);
  const flags = options.flatMap((each): Candidate[] => (each.flag ? [[each.flag, each.description]] : []));
  return [...flags, HELP];
}

function valuesOf({
  choices,
  placeholder,
  description,
}: DeclaredOption): readonly Candidate[] | typeof FILES {
  if (choices) return withText(choices, description);
  return placeholder === "file" || placeholder === "folder" ? FILES : [];
}

function withText(words: readonly string[], description: string): Candidate[] {
  return words.map((word) => [word, description]);
}
