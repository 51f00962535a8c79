import * as z from "zod";
import type { Member } from "../../../records/members.ts";
import { CREATED_EXAMPLE, instant } from "../schema-parts.ts";

/** A member, as the API returns it. */
export const member = z
  .strictObject({
    userId: z.string().meta({ description: "The ID of the user, for the removal of the member." }),
    name: z.string(),
    email: z.string(),
    role: z.string().meta({ description: "`admin`, or another role." }),
    joinedAt: instant,
  })
  .meta({
    id: "Member",
    description: "A member of the organization.",
    examples: [
      {
        userId: "u-1",
        name: "Ada Lovelace",
        email: "ada@example.com",
        role: "admin",
        joinedAt: CREATED_EXAMPLE,
      },
    ],
  });

/** Field by field, so that a new key of the record does not become public. */
export function toMember({ userId, name, email, role, joinedAt }: Member): z.infer<typeof member> {
  return { userId, name, email, role, joinedAt: joinedAt.toISOString() };
}
