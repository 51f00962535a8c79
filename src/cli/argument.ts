import type * as z from "zod";
import { argumentTerm, declaredOptions, option } from "../settings/option.ts";

/** Declares an argument: a word of the command line that is known by its position, and has no variable. */
export function argument<S extends z.ZodType>(schema: S, text: { readonly description: string }): S {
  return option(schema, { ...text, argument: true });
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
    return { key, description, choices, required, term: argumentTerm({ key, required }) };
  });
  const afterOptional = declared.find(({ required }, at) => required && declared[at - 1]?.required === false);
  if (afterOptional) throw new Error(`${afterOptional.key} comes after an argument that may be left out`);
  return declared;
}
