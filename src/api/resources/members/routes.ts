import type { Router } from "express";
import * as z from "zod";
import { authorize } from "../../middleware/authorize.ts";
import { discardBody } from "../../middleware/json-body.ts";
import { methodNotAllowed } from "../../middleware/not-found.ts";
import { requesterOf } from "../../middleware/request-context.ts";
import { sendResult } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { expressPaths, type PathAliases } from "../../path-aliases.ts";
import { memberParams, organizationParam, permitOrganization, type TenantRecords } from "../path-params.ts";
import { createRouter } from "../router.ts";
import { member, toMember } from "./schema.ts";
import { listedMembers, type MembersServiceDeps, removeMember } from "./service.ts";

export const listMembers = {
  method: "GET",
  path: "/v1/organizations/{organizationId}/members",
  id: "listMembers",
  tag: "User management",
  summary: "List the members of an organization",
  description: "Every member of the organization, in the order in which they joined. There is no paging.",
  result: z.array(member),
  refusals: { 404: "The organization does not exist, or the key belongs to another one." },
} as const satisfies Operation;

export const deleteMember = {
  method: "DELETE",
  path: "/v1/organizations/{organizationId}/members/{userId}",
  id: "removeMember",
  tag: "User management",
  summary: "Remove a member from an organization",
  description:
    "Requires the role `admin`. An organization always keeps one admin: the last one cannot be removed.",
  refusals: {
    400: "The organizationId is not a UUID, the userId is not UTF-8, or the member is the organization's last admin.",
    404: "The organization does not exist, or the key belongs to another one; or it has no such member, perhaps because the member has been removed already.",
  },
} as const satisfies Operation;

export interface MembersDeps extends MembersServiceDeps {
  readonly cache: TenantRecords & MembersServiceDeps["cache"];
  readonly pathAliases: PathAliases;
}

export function membersRouter(deps: MembersDeps): Router {
  const router = createRouter();
  router
    .route(expressPaths(listMembers.path, deps.pathAliases))
    .get(authorize, (request, response) => {
      const { id } = organizationParam(request, deps.cache);
      sendResult(response, listedMembers(id, deps.cache).map(toMember));
    })
    .all(methodNotAllowed);
  router
    .route(expressPaths(deleteMember.path, deps.pathAliases))
    .delete(authorize, async (request, response) => {
      const params = memberParams(request, deps.cache);
      await discardBody(request, response);
      const requester = requesterOf(request, () => permitOrganization(request, deps.cache));
      await removeMember(params, requester, deps);
      sendResult(response);
    })
    .all(methodNotAllowed);
  return router;
}
