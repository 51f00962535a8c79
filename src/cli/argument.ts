import type * as z from "zod";
import { declaredOptions, hyphenated, option, parseWritten } from "../settings/option.ts";

/** Declares an argument: a word of the command line that is known by its position, and has no variable. */
export function argument<S extends z.ZodType>(schema: S, text: { readonly description: string }): S {
  return option(schema, text);
}

export interface DeclaredArgument {
  readonly key: string;
  readonly description: string;
  readonly choices: readonly string[] | undefined;
  readonly required: boolean;
  /** `<service>`, or `[service]` for one that may be left out. */
  readonly term: string;
}

/** All arguments of a command, in their order: those that may be left out come last. */
export function declaredArguments(args: z.ZodObject): DeclaredArgument[] {
  const declared = declaredOptions(args).map(({ key, description, choices, required }) => {
    const name = hyphenated(key);
    return { key, description, choices, required, term: required ? `<${name}>` : `[${name}]` };
  });
  const afterOptional = declared.find(({ required }, at) => required && declared[at - 1]?.required === false);
  if (afterOptional) throw new Error(`${afterOptional.key} comes after an argument that may be left out`);
  return declared;
}

/**
 * Reads the values of the arguments.
 *
 * @param words at most as many as there are arguments
 * @throws UsageError with a sentence for each that is wrong or missing
 */
export function readArguments<A extends z.ZodObject>(args: A, words: readonly string[]): z.output<A> {
  const declared = declaredArguments(args);
  const written = Object.fromEntries(
    declared.slice(0, words.length).map(({ key }, at): [string, string | undefined] => [key, words[at]]),
  );
  return parseWritten(args, written, (key, rule) => {
    const about = declared.find((each) => each.key === key);
    return about && sentence(about, written[about.key], rule);
  });
}

function sentence({ term, description }: DeclaredArgument, value: string | undefined, rule: string): string {
  return value === undefined
    ? `${term} is missing: ${description}.`
    : `${term} is ${JSON.stringify(value)}, but ${rule}.`;
}
