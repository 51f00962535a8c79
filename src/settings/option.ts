import * as z from "zod";
import { choicesOf } from "./values.ts";

/** What the command line and its help need to know of an option beside its schema. */
export interface OptionText {
  readonly description: string;
  /** Stands for the value in the help; a switch has none. `file` and `folder` are completed as such. */
  readonly placeholder?: string;
  /** As a person would write it: it goes through the schema like any other value. */
  readonly default?: string;
  /** The flag may be repeated; its values are joined by commas, which is how the variable has them. */
  readonly list?: true;
  /**
   * A variable and no flag, because everybody on the machine can read a command line; and no sentence
   * repeats its value.
   */
  readonly secret?: true;
  /** A flag and no variable: what one command is to change must not come from what was set for another. */
  readonly flagOnly?: true;
  /** The value in the chart (chart.ts): its default if it is another one, or `false` for a setting without one. */
  readonly chart?: false | { readonly default: unknown };
}

export type Environment = Readonly<Record<string, string | undefined>>;

interface Declared extends OptionText {
  readonly schema: z.ZodType;
  readonly choices?: readonly string[] | undefined;
}

const texts = new WeakMap<z.core.$ZodType, Declared>();

/**
 * Declares an option. Its key in the object of a command's options gives the flag and the variable, its
 * schema (of the text as written) the check and the type: nothing about it is said anywhere else.
 */
export function option<S extends z.ZodType>(schema: S, text: OptionText): S {
  // A schema that serves several options has a text for each.
  const own = schema.clone();
  texts.set(own, { ...text, schema, choices: choicesOf(schema) });
  return own;
}

export interface DeclaredOption extends Declared {
  readonly key: string;
  /** `--ops-port`; a secret has none. */
  readonly flag: string | undefined;
  /** `PIPE_SCALING_OPS_PORT`; what is only a flag has none. */
  readonly variable: string | undefined;
  readonly required: boolean;
}

/** All options of a command, in the order in which they are declared. */
export function declaredOptions(options: z.ZodObject): DeclaredOption[] {
  return Object.entries(options.shape).map(([key, schema]) => {
    const text = texts.get(schema);
    if (!text) throw new Error(`${key} is not declared by option()`);
    const required = text.default === undefined && !z.safeParse(schema, undefined).success;
    const flag = text.secret ? undefined : flagOf(key);
    const variable = text.flagOnly ? undefined : variableOf(key);
    return { ...text, key, flag, variable, required };
  });
}

/** A key without the unit that a program needs to know and a person writes: `drainDelayMs` is `drainDelay`. */
export function withoutUnit(key: string): string {
  return key.replace(/Ms$/, "");
}

/** The words of a key, as flags and the names of arguments have them: `opsPort` is `ops-port`. */
export function hyphenated(key: string): string {
  return withoutUnit(key).replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function flagOf(key: string): string {
  return `--${hyphenated(key)}`;
}

export function variableOf(key: string): string {
  return `PIPE_SCALING_${hyphenated(key).replaceAll("-", "_").toUpperCase()}`;
}

/** The command line or the environment is wrong; the message is for the person who wrote them. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/**
 * The options' values: the flag, else the variable unless it is empty, else the default.
 *
 * @param flags as the command line had them, by key without its unit
 * @throws UsageError with a sentence for each value that is wrong or missing
 */
export function readOptions<S extends z.ZodObject>(
  options: S,
  flags: Readonly<Record<string, string | undefined>>,
  env: Environment,
): z.output<S> {
  const declared = declaredOptions(options);
  const written = Object.fromEntries(
    declared.flatMap(({ key, variable, ...text }) => {
      const inEnvironment = variable === undefined ? undefined : env[variable];
      const value = flags[withoutUnit(key)] ?? (inEnvironment || undefined) ?? text.default;
      return value === undefined ? [] : [[key, value]];
    }),
  );
  return parseWritten(options, written, (key, rule) => {
    const about = declared.find((each) => each.key === key);
    return about && sentence(about, written[about.key], rule);
  });
}

/**
 * @param sentence for the value of a key that breaks a rule; without one the rule stands for itself
 * @throws UsageError with a sentence for each value that is wrong or missing
 */
export function parseWritten<S extends z.ZodObject>(
  schema: S,
  written: Readonly<Record<string, string | undefined>>,
  sentence: (key: PropertyKey | undefined, rule: string) => string | undefined,
): z.output<S> {
  const result = schema.safeParse(written);
  if (result.success) return result.data;
  const sentences = result.error.issues.map(({ path, message }) => sentence(path[0], message) ?? message);
  throw new UsageError(sentences.join("\n"));
}

function sentence(about: DeclaredOption, value: string | undefined, rule: string): string {
  const { flag, variable, description, secret } = about;
  const named = flag && variable ? `${flag} (or ${variable})` : (flag ?? variable);
  if (value === undefined) return `${named} is missing: ${description}.`;
  return secret ? `${named} does not serve: ${rule}.` : `${named} is ${JSON.stringify(value)}, but ${rule}.`;
}
