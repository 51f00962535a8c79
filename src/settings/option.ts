import * as z from "zod";
import { choicesOf } from "./values.ts";

/** The properties of an option that its schema does not have. */
export interface OptionText {
  readonly description: string;
  /**
   * Placeholder for the value in the help; a switch has none. The shell completes `file` and `folder`. Errors do not
   * contain the value of a `url` with a user or a password.
   */
  readonly placeholder?: string;
  /** Short form of the flag, as in kubectl: `-n`. */
  readonly short?: string;
  /** The default as text; the schema parses it like any other value. */
  readonly default?: string;
  /** The flag may be repeated; its values are joined by commas, the format of the variable. */
  readonly list?: true;
  /**
   * Only a variable, no flag, because every user of the machine can read command lines. Errors never contain its
   * value.
   */
  readonly secret?: true;
  /** Errors never contain its value, because people write it together with a secret. */
  readonly unquoted?: true;
  /** Only a flag, no variable: a value exported for one command must not change the effect of another. */
  readonly flagOnly?: true;
  /** Returns values that a shell can offer, if the schema does not list all of them. */
  readonly complete?: ((env: Environment) => readonly string[]) | undefined;
  /** A positional argument of the command line, without a flag or a variable. */
  readonly argument?: true;
  /** The differences of the chart value, or `false` if chart.ts makes no chart value from the setting. */
  readonly chart?: false | { readonly default: unknown; readonly description?: string };
}

export type Environment = Readonly<Record<string, string | undefined>>;

interface Declared extends OptionText {
  readonly schema: z.ZodType;
  readonly choices?: readonly string[] | undefined;
}

const texts = new WeakMap<z.core.$ZodType, Declared>();

/**
 * Declares an option. This is its only declaration: the flag and the variable are derived from its key in the options
 * of a command, validation and type from its schema, which parses the text.
 */
export function option<S extends z.ZodType>(schema: S, text: OptionText): S {
  // Options can share a schema; the clone gives each its own text.
  const own = schema.clone();
  texts.set(own, { ...text, schema, choices: choicesOf(schema) });
  return own;
}

export interface DeclaredOption extends Declared {
  readonly key: string;
  /** `--ops-port`; a secret and an argument have none. */
  readonly flag: string | undefined;
  /** `PIPE_SCALING_OPS_PORT`; a flag-only option and an argument have none. */
  readonly variable: string | undefined;
  readonly required: boolean;
}

/**
 * Options by their keys; each is declared by {@link option}. This is not one object schema, whose refinements would be
 * lost where options are combined. Instead, the function that converts the settings of a process, or the `check` of a
 * command, checks whether the values fit together.
 */
export type Options = Readonly<Record<string, z.ZodType>>;

export type Values<O extends Options> = { readonly [Key in keyof O]: z.output<O[Key]> };

/** Returns all options of a command, in the order in which they are declared. */
export function declaredOptions(options: Options): DeclaredOption[] {
  return Object.entries(options).map(([key, schema]) => {
    const text = texts.get(schema);
    if (!text) throw new Error(`${key} is not declared by option()`);
    const required = text.default === undefined && !z.safeParse(schema, undefined).success;
    const flag = text.secret || text.argument ? undefined : flagOf(key);
    const variable = text.flagOnly || text.argument ? undefined : variableOf(key);
    return { ...text, key, flag, variable, required };
  });
}

/** The name of an argument in the help: `<service>`, or `[service]` for one that may be left out. */
export function argumentTerm({ key, required }: Pick<DeclaredOption, "key" | "required">): string {
  return required ? `<${hyphenated(key)}>` : `[${hyphenated(key)}]`;
}

/** Removes the unit from a key, because people write it with the value: `drainDelayMs` becomes `drainDelay`. */
export function withoutUnit(key: string): string {
  return key.replace(/Ms$/, "");
}

/** Converts a key to kebab case for flags and argument names: `opsPort` becomes `ops-port`. */
export function hyphenated(key: string): string {
  return withoutUnit(key).replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function flagOf(key: string): string {
  return `--${hyphenated(key)}`;
}

export function variableOf(key: string): string {
  return `PIPE_SCALING_${hyphenated(key).replaceAll("-", "_").toUpperCase()}`;
}

/** An invalid command line or environment; the message is for the user. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/**
 * Reads the values of options and arguments: the flag, else the variable unless it is empty, else the default.
 *
 * @param flags values from the command line, by key without the unit; those of arguments, too
 * @throws UsageError with a sentence for each invalid or missing value
 */
export function readOptions<O extends Options>(
  options: O,
  flags: Readonly<Record<string, string | undefined>>,
  env: Environment,
): Values<O>;
export function readOptions(
  options: Options,
  flags: Readonly<Record<string, string | undefined>>,
  env: Environment,
): Values<Options> {
  const declared = declaredOptions(options);
  const written = Object.fromEntries(
    declared.flatMap(({ key, variable, ...text }) => {
      const inEnvironment = variable === undefined ? undefined : env[variable];
      const value = flags[withoutUnit(key)] ?? (inEnvironment || undefined) ?? text.default;
      return value === undefined ? [] : [[key, value]];
    }),
  );
  const result = z.object(options).safeParse(written);
  if (result.success) return result.data;
  const sentences = result.error.issues.map(({ path: [key], message }) => {
    const about = declared.find((each) => each.key === key);
    return about ? sentence(about, written[about.key], message) : message;
  });
  throw new UsageError(sentences.join("\n"));
}

function sentence(about: DeclaredOption, value: string | undefined, rule: string): string {
  const { flag, variable, description } = about;
  const named = flag && variable ? `${flag} (or ${variable})` : (flag ?? variable ?? argumentTerm(about));
  if (value === undefined) return `${named} is missing: ${description}.`;
  if (mayHaveSecret(about, value)) return `${named} is invalid: ${rule}.`;
  return `${named} is ${JSON.stringify(value)}, but ${rule}.`;
}

function mayHaveSecret({ secret, unquoted, placeholder }: DeclaredOption, value: string): boolean {
  return Boolean(secret || unquoted) || (placeholder === "url" && value.includes("@"));
}
