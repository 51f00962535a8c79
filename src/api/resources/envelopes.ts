import * as z from "zod";

export const errorEnvelope = z.strictObject({ error: z.string(), status: z.int().min(400).max(599) }).meta({
  id: "Error",
  description: "The body of every response that is not a 200. `error` is a sentence for people.",
});

/** The envelope of an operation without a result. */
export const emptyEnvelope = z.strictObject({ requestId: z.uuidv4(), status: z.literal(200) });

export function successEnvelope<T extends z.ZodType>(result: T) {
  return emptyEnvelope.extend({ result });
}
