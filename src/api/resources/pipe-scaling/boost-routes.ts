import type { Request, Router } from "express";
import type { Size } from "../../../domain/size.ts";
import type { SizeRequest } from "../../cluster/pipe-scaling-writer.ts";
import { ERRORS } from "../../error-table.ts";
import { authorize } from "../../middleware/authorize.ts";
import { discardBody, readJsonBody } from "../../middleware/json-body.ts";
import { methodNotAllowed } from "../../middleware/not-found.ts";
import { type Requester, requesterOf } from "../../middleware/request-context.ts";
import { sendResult } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { expressPaths, type PathAliases } from "../../path-aliases.ts";
import { permitService, type ServiceParams, serviceParams, type TenantRecords } from "../path-params.ts";
import { createRouter } from "../router.ts";
import { boost, boostRequest, toBoost } from "./boost-schema.ts";
import { type BoostServiceDeps, currentBoost, endBoost, startBoost } from "./boost-service.ts";
import { NO_PIPE, READ_REFUSALS, SCALING_PATH } from "./operation-parts.ts";

const path = `${SCALING_PATH}/boost` as const;

const NO_BOOST =
  "The organization does not exist, or the key belongs to another one; or it has no such service; or no boost is in effect.";
const SUSPENDED = "Scaling of the service is suspended.";

export const getBoost = {
  method: "GET",
  path,
  id: "getPipeScalingBoost",
  tag: "Pipes",
  summary: "Get the boost of a service",
  description:
    "The size that the pipes of the service should have until a time, and that time. Returns 404 as soon as the boost has ended.",
  isBeta: true,
  result: boost,
  refusals: { 400: `An ID in the path is not a UUID, or ${NO_PIPE}.`, 404: NO_BOOST },
} as const satisfies Operation;

export const updateBoost = {
  method: "PUT",
  path,
  id: "startPipeScalingBoost",
  tag: "Pipes",
  summary: "Boost the pipes of a service until a time",
  description:
    "Requires the role `admin`. Gives all database pipes of the service another size until a time, for example for an initial load. The pipes then return to the requested size by themselves. Replaces an earlier boost. A PATCH of the size during a boost changes the size after it. `GET …/pipesCdcScaling/progress` shows the boost with the time left.",
  isBeta: true,
  body: {
    schema: boostRequest,
    example: { replicaCpuMillicores: 16_000, replicaMemoryGb: 64, until: "2026-01-31T20:00:00Z" },
  },
  result: boost,
  refusals: {
    400: `An ID in the path is not a UUID, the body is invalid, the size is above the limit of the organization's tier, the end is past or too far in the future (30 days, unless the operator of the API has set another limit), or ${NO_PIPE}.`,
    404: READ_REFUSALS[404],
    409: SUSPENDED,
  },
} as const satisfies Operation;

export const deleteBoost = {
  method: "DELETE",
  path,
  id: "endPipeScalingBoost",
  tag: "Pipes",
  summary: "End the boost of a service now",
  description:
    "Requires the role `admin`. The pipes return to the requested size, as they do at the end of the boost.",
  isBeta: true,
  refusals: {
    400: `An ID in the path is not a UUID, or ${NO_PIPE}.`,
    404: NO_BOOST,
    409: SUSPENDED,
    503: `Temporarily unavailable. ${ERRORS.EndNotConfirmed.sentence()}`,
  },
} as const satisfies Operation;

export interface BoostDeps extends BoostServiceDeps {
  readonly cache: TenantRecords & BoostServiceDeps["cache"];
  readonly pathAliases: PathAliases;
  /** The largest size that can be requested; a tier can allow less. */
  readonly maximumSize: Size;
}

export function boostRouter(deps: BoostDeps): Router {
  const { cache, clock, pathAliases, maximumSize } = deps;
  const body = boostRequest(maximumSize);
  const authorOf = (request: Request, params: ServiceParams): SizeRequest & Requester => ({
    ...requesterOf(request, () => permitService(request, cache, params)),
    requestedAt: new Date(clock.now()).toISOString(),
  });
  const router = createRouter();
  router
    .route(expressPaths(path, pathAliases))
    .get(authorize, (request, response) => {
      const { service } = serviceParams(request, cache);
      sendResult(response, toBoost(currentBoost(service, deps)));
    })
    .put(authorize, async (request, response) => {
      const params = serviceParams(request, cache);
      const requested = await readJsonBody(request, response, body);
      const stored = await startBoost(params, requested, authorOf(request, params), deps);
      sendResult(response, toBoost(stored));
    })
    .delete(authorize, async (request, response) => {
      const params = serviceParams(request, cache);
      await discardBody(request, response);
      await endBoost(params, authorOf(request, params), deps);
      sendResult(response);
    })
    .all(methodNotAllowed);
  return router;
}
