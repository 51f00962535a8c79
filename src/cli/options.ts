import * as z from "zod";
import { canonicalUuid } from "../domain/identifiers.ts";
import { flagOf, type OptionText, option, UsageError } from "../settings/option.ts";
import { alternatives, durationMs, listOf, oneOf, onOff, type Value, written } from "../settings/values.ts";
import { FORMATS } from "./output.ts";

/*
 * Options, arguments and values that several commands share.
 */

/** Declares an argument: a word of the command line that is known by its position, and has no variable. */
export function argument<S extends z.ZodType>(
  schema: S,
  description: string,
  complete?: OptionText["complete"],
): S {
  return option(schema, { description, argument: true, complete });
}

/** An option without a value, off by default. */
export function switchOption(description: string) {
  return option(onOff, { description, default: "false" });
}

export const outputOption = {
  output: option(oneOf(...FORMATS), {
    short: "-o",
    placeholder: "format",
    description: "table is for people; json and yaml are for programs",
    default: "table",
  }),
};

export const wideOutputOption = {
  output: option(oneOf(...FORMATS, "wide"), {
    short: "-o",
    placeholder: "format",
    description: "table, and wide with more columns, are for people; json and yaml are for programs",
    default: "table",
  }),
};

/** For commands that ask before they act; see confirm(). */
export const yesOption = {
  yes: switchOption("do not ask for confirmation"),
};

/** Options of a command that shows the state of a rescale, to follow its progress. */
export const watchOptions = {
  watch: option(onOff, {
    short: "-w",
    description: "show the progress until the rescale ends",
    default: "false",
    flagOnly: true,
  }),
  timeout: option(durationMs("1s", "24h").optional(), {
    placeholder: "duration",
    description: "with --watch, the longest time to wait, such as 15m (default: no limit)",
    flagOnly: true,
  }),
};

/** @throws UsageError for a timeout without a watch */
export function requireWatch(watch: boolean, timeoutMs: number | undefined): void {
  if (timeoutMs !== undefined && !watch) throw new UsageError("--timeout needs --watch.");
}

/** @throws UsageError if an update changes nothing: none of these options has a value */
export function requireChange(options: object, values: Readonly<Record<string, unknown>>): void {
  const keys = Object.keys(options);
  if (keys.some((key) => values[key] !== undefined)) return;
  throw new UsageError(`Nothing to change. Specify ${alternatives(keys.map(flagOf))}.`);
}

/** The program, cluster and namespace of the current command, for the commands that it prints. */
export interface Place {
  /** The program as people type it. */
  readonly program: string;
  /** `undefined`, like `context`, if it was not specified: printed commands then do not have the flag. */
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  /** Namespace of the records. */
  readonly namespace: string;
}

/**
 * Returns a command of this program that acts on the same records, to be printed. If text follows the command, put it
 * in backticks, so that people can copy exactly the command.
 *
 * @param words the command line after the name of the program
 */
export function programCommand(place: Place, words: string): string {
  // The default namespace is printed, too, because an environment variable may set another one.
  return `${place.program} ${words}${clusterFlags(place)} --namespace ${place.namespace}`;
}

/** A kubectl command to print, which acts on the same cluster. @param words after kubectl */
export function kubectlCommand(place: Place, words: string): string {
  return `kubectl ${words}${clusterFlags(place)}`;
}

/**
 * Returns the kubeconfig and the context of the current command as flags, each with a leading space; kubectl has the
 * same flags. The same IDs can exist in several clusters, so a printed command must select the same one.
 */
function clusterFlags({ kubeconfig, context }: Place): string {
  const flag = (name: string, value: string | undefined) =>
    value === undefined ? "" : ` --${name} ${quotedForShell(value)}`;
  return `${flag("kubeconfig", kubeconfig)}${flag("context", context)}`;
}

export function quotedForShell(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** Declares a value that can also be this word, such as `never` instead of a time. */
export function orWord<const W extends string, T>(word: W, value: Value<T>): Value<W | T> {
  return z.string().transform((text, context): W | T => {
    if (text === word) return word;
    const read = value.safeParse(text);
    if (read.success) return read.data;
    const rule = read.error.issues[0]?.message ?? "";
    context.addIssue({ code: "custom", message: `${rule}, or ${word}` });
    return z.NEVER;
  });
}

export const role = oneOf("admin", "developer");
export const roles = listOf(role);

export const uuid = written("it must be a UUID such as 01234567-89ab-4cde-8f01-23456789abcd", canonicalUuid);
