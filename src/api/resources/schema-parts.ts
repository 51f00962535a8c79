import * as z from "zod";

/*
 * Parts of the schemas in the files `schema.ts`. One schema validates a body, defines its type and, with its `meta`,
 * its entry in the OpenAPI document. Each error message follows the name of its field: `replicaMemoryGb must be …`.
 */

/** A UUID of any version. */
export const id = z.guid();

/** Always in UTC. */
export const instant = z.iso.datetime();

/**
 * A word that explains a state. It is an open string, not an enumeration, because generated clients would reject the
 * words of later versions.
 */
export function reasonWord(known: readonly string[]): z.ZodString {
  const description = "The reason as one word, for programs. Later versions can add words.";
  return z.string().meta({ description: `${description} ${knownWords(known)}` });
}

export function knownWords(words: readonly string[]): string {
  return `Known words: ${words.map((word) => `\`${word}\``).join(", ")}.`;
}

export const ID_EXAMPLE = "6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11";
export const CREATED_EXAMPLE = "2026-01-31T12:00:00.000Z";
