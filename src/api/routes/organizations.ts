import { ownOrganization, type Records } from "../places.ts";
import type { Route } from "../routes.ts";
import { type OrganizationObject, toOrganization } from "../schemas.ts";

export function organizationRoutes(records: Records): readonly Route[] {
  return [
    {
      method: "GET",
      path: "/v1/organizations",
      serve(call): OrganizationObject[] {
        const organization = ownOrganization(call, records);
        return organization ? [toOrganization(organization)] : [];
      },
    },
  ];
}
