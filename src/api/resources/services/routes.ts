import type { Router } from "express";
import * as z from "zod";
import type { Service } from "../../../records/service.ts";
import type { ClusterCache } from "../../cluster/cluster-cache.ts";
import { authorize } from "../../middleware/authorize.ts";
import { methodNotAllowed } from "../../middleware/not-found.ts";
import { sendResult } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { expressPaths, type PathAliases } from "../../path-aliases.ts";
import { organizationParam, type TenantRecords } from "../path-params.ts";
import { createRouter } from "../router.ts";
import { service, toService } from "./schema.ts";

export const listServices = {
  method: "GET",
  path: "/v1/organizations/{organizationId}/services",
  id: "listServices",
  tag: "Service",
  summary: "List the services of an organization",
  description: "ID and name of every service of the organization, sorted by name. There is no paging.",
  result: z.array(service),
  refusals: { 404: "The organization does not exist, or the key belongs to another one." },
} as const satisfies Operation;

export interface ServicesDeps {
  readonly cache: TenantRecords & Pick<ClusterCache, "servicesOf">;
  readonly pathAliases: PathAliases;
}

export function servicesRouter({ cache, pathAliases }: ServicesDeps): Router {
  const router = createRouter();
  router
    .route(expressPaths(listServices.path, pathAliases))
    .get(authorize, (request, response) => {
      const { id } = organizationParam(request, cache);
      sendResult(response, cache.servicesOf(id).toSorted(byName).map(toService));
    })
    .all(methodNotAllowed);
  return router;
}

/** Compares names by code unit, which is the same on every machine; the ID breaks ties. */
function byName(a: Service, b: Service): number {
  return compare(a.name, b.name) || compare(a.id, b.id);
}

function compare(a: string, b: string): number {
  return Number(a > b) - Number(a < b);
}
