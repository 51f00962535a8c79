import type { DeclaredOption } from "../../settings/option.ts";
import { type CommandDefinition, type CommandNode, isGroup } from "../command.ts";
import type { ProgramSpec } from "../program.ts";

/** A flag, as a shell can complete it. */
export interface Flag {
  /** `--output` */
  readonly name: string;
  readonly description: string;
  /** `none` for a switch. */
  readonly value: "none" | "file" | "any" | readonly string[];
}

/** A word that can come next, and what it is. */
export interface Word {
  readonly name: string;
  readonly description: string;
}

/** Where on the command line somebody is: after these words. */
export interface Place {
  /** `/organization/create`; empty before any command. */
  readonly path: string;
  readonly words: readonly Word[];
  readonly flags: readonly Flag[];
}

const HELP: Flag = { name: "--help", description: "print the help", value: "none" };
const VERSION: Flag = { name: "--version", description: "print the version", value: "none" };

/** Every place that a command line can be at. */
export function placesOf({ commands }: ProgramSpec): Place[] {
  const root = { path: "", words: commands.map(wordOf), flags: [VERSION, HELP] };
  return [root, ...placesBelow("", commands)];
}

function placesBelow(parent: string, nodes: readonly CommandNode[]): Place[] {
  return nodes.flatMap((node) => {
    const path = `${parent}/${node.name}`;
    if (!isGroup(node)) return [placeOf(path, node)];
    return [{ path, words: node.commands.map(wordOf), flags: [HELP] }, ...placesBelow(path, node.commands)];
  });
}

function wordOf({ name, summary }: { readonly name: string; readonly summary: string }): Word {
  return { name, description: summary };
}

function placeOf(path: string, command: CommandDefinition): Place {
  // Only the first argument of a command has ever few values.
  const [argument] = command.arguments;
  const words = (argument?.choices ?? []).map((name) => ({ name, description: argument?.description ?? "" }));
  return { path, words, flags: [...command.options.flatMap(flagsOf), HELP] };
}

function flagsOf({ flag, description, ...option }: DeclaredOption): Flag[] {
  return flag === undefined ? [] : [{ name: flag, description, value: takes(option) }];
}

function takes({ placeholder, choices }: Pick<DeclaredOption, "placeholder" | "choices">): Flag["value"] {
  if (placeholder === undefined) return "none";
  if (choices) return choices;
  return placeholder === "file" || placeholder === "folder" ? "file" : "any";
}
