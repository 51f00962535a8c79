import * as z from "zod";
import { hyphenated, parseWritten } from "../settings/option.ts";
import { choicesOf } from "../settings/values.ts";

export interface ArgumentText {
  readonly description: string;
}

interface Declared extends ArgumentText {
  readonly choices: readonly string[] | undefined;
}

const texts = z.registry<Declared>();

/** Declares an argument: a word of the command line that is known by its place alone, and has no variable. */
export function argument<S extends z.ZodType>(schema: S, text: ArgumentText): S {
  const own = schema.clone();
  texts.add(own, { ...text, choices: choicesOf(schema) });
  return own;
}

export interface DeclaredArgument extends Declared {
  readonly key: string;
  /** `<service>`, or `[service]` for one that may be left out. */
  readonly term: string;
  readonly required: boolean;
}

/** All arguments of a command, in their order: those that may be left out come last. */
export function declaredArguments(args: z.ZodObject): DeclaredArgument[] {
  const declared = Object.entries(args.shape).map(([key, schema]) => {
    const text = texts.get(schema);
    if (!text) throw new Error(`${key} is not declared by argument()`);
    const required = !z.safeParse(schema, undefined).success;
    const name = hyphenated(key);
    return { ...text, key, required, term: required ? `<${name}>` : `[${name}]` };
  });
  const afterOptional = declared.find(({ required }, at) => required && declared[at - 1]?.required === false);
  if (afterOptional) throw new Error(`${afterOptional.key} comes after an argument that may be left out`);
  return declared;
}

/**
 * The arguments' values, by their keys.
 *
 * @param words as many as there are arguments, at most
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
