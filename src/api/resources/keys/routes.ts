import type { Router } from "express";
import * as z from "zod";
import type { ApiKey } from "../../../records/api-key.ts";
import type { ClusterCache } from "../../cluster/cluster-cache.ts";
import { authorize } from "../../middleware/authorize.ts";
import { methodNotAllowed } from "../../middleware/not-found.ts";
import { sendResult } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { expressPaths, type PathAliases } from "../../path-aliases.ts";
import { organizationParam, type TenantRecords } from "../path-params.ts";
import { createRouter } from "../router.ts";
import { apiKey, toApiKey } from "./schema.ts";

export const listKeys = {
  method: "GET",
  path: "/v1/organizations/{organizationId}/keys",
  id: "listKeys",
  tag: "OpenAPI",
  summary: "List the API keys of an organization",
  description: "Every API key of the organization, in order of creation. Secrets are never returned.",
  result: z.array(apiKey),
  refusals: { 404: "The organization does not exist, or the key belongs to another one." },
} as const satisfies Operation;

export interface KeysDeps {
  readonly cache: TenantRecords & Pick<ClusterCache, "keysOf" | "usedAt">;
  readonly pathAliases: PathAliases;
}

export function keysRouter({ cache, pathAliases }: KeysDeps): Router {
  const router = createRouter();
  router
    .route(expressPaths(listKeys.path, pathAliases))
    .get(authorize, (request, response) => {
      const { id } = organizationParam(request, cache);
      const keys = cache.keysOf(id).toSorted(byCreation);
      sendResult(
        response,
        keys.map((key) => toApiKey(key, cache.usedAt(key))),
      );
    })
    .all(methodNotAllowed);
  return router;
}

/** The ID breaks ties, so that the order is always the same. */
function byCreation(a: ApiKey, b: ApiKey): number {
  return a.createdAt.getTime() - b.createdAt.getTime() || Number(a.id > b.id) - Number(a.id < b.id);
}
