import * as z from "zod";
import type { ApiKey } from "../../../records/api-key.ts";
import { CREATED_EXAMPLE, ID_EXAMPLE, id, instant } from "../schema-parts.ts";

export const apiKey = z
  .strictObject({
    id: id.meta({
      description: "The resource ID of the key, which is not the key ID in HTTP Basic.",
    }),
    name: z.string(),
    state: z.enum(["enabled", "disabled"]),
    roles: z.array(z.string()).meta({
      description: "`admin` may do everything, `developer` may only read, any other role has no permissions.",
    }),
    createdAt: instant,
    expireAt: instant
      .optional()
      .meta({ description: "Time at which the key expires. Absent if it does not expire." }),
    usedAt: instant
      .optional()
      .meta({ description: "Last use, to the minute. Absent if the key was never used." }),
    keySuffix: z.string().meta({ description: "The last characters of the key ID." }),
    ipAccessList: z.array(z.strictObject({ description: z.string(), source: z.string() })).meta({
      description:
        "Addresses and CIDRs that the key may be used from. If empty, it may be used from anywhere.",
    }),
  })
  .meta({
    id: "ApiKey",
    description: "An API key. Its secret is never returned.",
    examples: [
      {
        id: ID_EXAMPLE,
        name: "deployments",
        state: "enabled",
        roles: ["admin"],
        createdAt: CREATED_EXAMPLE,
        keySuffix: "x7Qd",
        ipAccessList: [{ description: "the office", source: "203.0.113.0/24" }],
      },
    ],
  });

export type ApiKeyObject = z.infer<typeof apiKey>;

/** Field by field, so that a field that is added to a record stays internal. */
export function toApiKey(key: ApiKey, usedAt: Date | undefined): ApiKeyObject {
  const { id, name, state, roles, createdAt, expireAt, keySuffix, ipAccessList } = key;
  return {
    id,
    name,
    state,
    roles: [...roles],
    createdAt: createdAt.toISOString(),
    ...(expireAt ? { expireAt: expireAt.toISOString() } : {}),
    ...(usedAt ? { usedAt: usedAt.toISOString() } : {}),
    keySuffix,
    ipAccessList: ipAccessList.map(({ description, source }) => ({ description, source })),
  };
}
