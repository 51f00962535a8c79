import * as z from "zod";
import type { Service } from "../../../records/service.ts";
import { ID_EXAMPLE, id } from "../schema-parts.ts";

/** A service, as the API returns it. */
export const service = z.strictObject({ id, name: z.string() }).meta({
  id: "Service",
  description: "A service of the organization.",
  examples: [{ id: ID_EXAMPLE, name: "orders" }],
});

export type ServiceObject = z.infer<typeof service>;

/** Field by field, because callers must not see the namespace of the pipes. */
export function toService({ id, name }: Service): ServiceObject {
  return { id, name };
}
