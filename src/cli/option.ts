import * as z from "zod";

/** What the command line and its help need to know of an option beside its schema. */
export interface OptionText {
  readonly description: string;
  /** Stands for the value in the help; a switch has none. */
  readonly placeholder?: string;
  /** As a person would write it: it goes through the schema like any other value. */
  readonly default?: string;
  /** The flag may be repeated; its values are joined by commas, which is how the variable has them. */
  readonly list?: true;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const texts = z.registry<OptionText>();

/**
 * Declares an option. Its key in the object of a command's options gives the flag and the variable, its
 * schema (of the text as written) the check and the type: nothing about it is said anywhere else.
 */
export function option<S extends z.ZodType>(schema: S, text: OptionText): S {
  // A schema that serves several options has a text for each.
  const own = schema.clone();
  texts.add(own, text);
  return own;
}

export interface DeclaredOption extends OptionText {
  readonly key: string;
  /** `--ops-port` */
  readonly flag: string;
  /** `PIPE_SCALING_OPS_PORT` */
  readonly variable: string;
  readonly required: boolean;
}

/** All options of a command, in the order in which they are declared. */
export function declaredOptions(options: z.ZodObject): DeclaredOption[] {
  return Object.entries(options.shape).map(([key, schema]) => {
    const text = texts.get(schema);
    if (!text) throw new Error(`${key} is not declared by option()`);
    const required = text.default === undefined && !z.safeParse(schema, undefined).success;
    return { ...text, key, flag: flagOf(key), variable: variableOf(key), required };
  });
}

function words(key: string): string[] {
  return key.split(/(?=[A-Z])/).map((word) => word.toLowerCase());
}

export function flagOf(key: string): string {
  return `--${words(key).join("-")}`;
}

export function variableOf(key: string): string {
  return `PIPE_SCALING_${words(key).join("_").toUpperCase()}`;
}

/** Flags or variables are wrong; the message is for the person who wrote them. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/**
 * The options' values: the flag, else the variable unless it is empty, else the default.
 *
 * @param flags as the command line had them, by key
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
      const value = flags[key] ?? (env[variable] || undefined) ?? text.default;
      return value === undefined ? [] : [[key, value]];
    }),
  );
  const result = options.safeParse(written);
  if (result.success) return result.data;
  const sentences = result.error.issues.map((issue) => {
    const about = declared.find(({ key }) => key === issue.path[0]);
    return about ? sentence(about, written[about.key], issue.message) : issue.message;
  });
  throw new UsageError(sentences.join("\n"));
}

function sentence(about: DeclaredOption, value: string | undefined, rule: string): string {
  const named = `${about.flag} (or ${about.variable})`;
  return value === undefined
    ? `${named} is missing: ${about.description}.`
    : `${named} is ${JSON.stringify(value)}, but ${rule}.`;
}
