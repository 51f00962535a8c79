import type { Router } from "express";
import * as z from "zod";
import { authorize } from "../../middleware/authorize.ts";
import { methodNotAllowed } from "../../middleware/not-found.ts";
import { sendResult } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { expressPaths, type PathAliases } from "../../path-aliases.ts";
import { ownOrganization, type TenantRecords } from "../path-params.ts";
import { createRouter } from "../router.ts";
import { organization, toOrganization } from "./schema.ts";

export const listOrganizations = {
  method: "GET",
  path: "/v1/organizations",
  id: "listOrganizations",
  tag: "Organization",
  summary: "List the organizations of the key",
  description: "A list with one item: the organization of the API key.",
  result: z.array(organization),
  refusals: {},
} as const satisfies Operation;

export interface OrganizationsDeps {
  readonly cache: TenantRecords;
  readonly pathAliases: PathAliases;
}

export function organizationsRouter({ cache, pathAliases }: OrganizationsDeps): Router {
  const router = createRouter();
  router
    .route(expressPaths(listOrganizations.path, pathAliases))
    .get(authorize, (request, response) => {
      const own = ownOrganization(request, cache);
      sendResult(response, own ? [toOrganization(own)] : []);
    })
    .all(methodNotAllowed);
  return router;
}
