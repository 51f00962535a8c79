import * as z from "zod";

export const errorEnvelope = z.strictObject({ error: z.string(), status: z.int().min(400).max(599) }).meta({
  id: "Error",
  description: "What a request is answered that was not done. `error` is a sentence for people.",
});

/** Of an operation that has no result. */
export const emptyEnvelope = z.strictObject({ requestId: z.uuidv4(), status: z.literal(200) });

export function successEnvelope<T extends z.ZodType>(result: T) {
  return emptyEnvelope.extend({ result });
}
