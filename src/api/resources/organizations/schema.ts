import * as z from "zod";
import type { Organization } from "../../../records/organization.ts";
import { CREATED_EXAMPLE, ID_EXAMPLE, id, instant } from "../schema-parts.ts";

export const organization = z
  .strictObject({
    id,
    name: z.string(),
    createdAt: instant,
    byocConfig: z
      .array(z.strictObject({ accountName: z.string(), id: z.string() }))
      .meta({ description: "The organization's own cloud accounts that its services run in." }),
    privateEndpoints: z
      .array(z.strictObject({ description: z.string(), id: z.string() }))
      .meta({ description: "Private network endpoints of its services." }),
  })
  .meta({
    id: "Organization",
    examples: [
      {
        id: ID_EXAMPLE,
        name: "Acme",
        createdAt: CREATED_EXAMPLE,
        byocConfig: [{ accountName: "main", id: "123456789012" }],
        privateEndpoints: [{ description: "to the office", id: "vpce-0a1b2c3d" }],
      },
    ],
  });

export type OrganizationObject = z.infer<typeof organization>;

export function toOrganization(record: Organization): OrganizationObject {
  const { id, name, createdAt, byocConfig, privateEndpoints } = record;
  return {
    id,
    name,
    createdAt: createdAt.toISOString(),
    byocConfig: [...byocConfig],
    privateEndpoints: [...privateEndpoints],
  };
}
