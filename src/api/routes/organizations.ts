import * as z from "zod";
import { type OrganizationObject, organization, toOrganization } from "../organization-schema.ts";
import { ownOrganization, type Records } from "../places.ts";
import type { Operation, Route } from "../routes.ts";

const list = {
  id: "listOrganizations",
  tag: "Organization",
  summary: "List the organizations of the key",
  description: "A list with the one organization that the API key belongs to.",
  result: z.array(organization),
  refusals: {},
} as const satisfies Operation;

export function organizationRoutes(records: Records): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/v1/organizations",
      operation: list,
      serve(call): OrganizationObject[] {
        const organization = ownOrganization(call, records);
        return organization ? [toOrganization(organization)] : [];
      },
    },
  ];
}
