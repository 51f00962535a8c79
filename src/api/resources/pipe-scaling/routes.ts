import type { Router } from "express";
import type { Size } from "../../../domain/size.ts";
import type { Clock } from "../../../runtime/clock.ts";
import { authorize } from "../../middleware/authorize.ts";
import { readJsonBody } from "../../middleware/json-body.ts";
import { methodNotAllowed } from "../../middleware/not-found.ts";
import { requesterOf } from "../../middleware/request-context.ts";
import { memoizeJson, sendJsonResult, sendResult } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { expressPaths, type PathAliases } from "../../path-aliases.ts";
import { permitService, serviceParams, type TenantRecords } from "../path-params.ts";
import { createRouter } from "../router.ts";
import type { ScalingChangeDeps } from "./change.ts";
import { getPipeScalingHistory, type HistoryDeps, sendHistory } from "./history.ts";
import { getPipeScalingLimits, sendLimits } from "./limits.ts";
import { NO_PIPE, READ_REFUSALS, SCALING_PATH } from "./operation-parts.ts";
import { pipeScalingProgress, toPipeScalingProgress } from "./progress-schema.ts";
import { effectivePipeScaling, pipeScaling, pipeScalingPatch, toPipeScaling } from "./schema.ts";
import { reachedSize, requestSize, scalingProgress } from "./service.ts";

export const getPipeScaling = {
  method: "GET",
  path: SCALING_PATH,
  id: "getPipeScaling",
  tag: "Pipes",
  summary: "Get the size of the pipes of a service",
  description:
    "The size that every database pipe of the service runs, not the last requested size: during a rescale, the last size that all pipes had. Until all pipes have had a common size, the response is 503: their first rollout has not completed, or they ran before they belonged to the service, and keep what they had until a size is requested. `GET …/pipesCdcScaling/progress` shows how far the rollout is, and which pipes fail and why.",
  isBeta: true,
  result: effectivePipeScaling,
  refusals: {
    ...READ_REFUSALS,
    503: "Temporarily unavailable, or the pipes have had no common size yet, as `GET …/pipesCdcScaling/progress` shows.",
  },
} as const satisfies Operation;

export const updatePipeScaling = {
  method: "PATCH",
  path: SCALING_PATH,
  id: "updatePipeScaling",
  tag: "Pipes",
  summary: "Scale the pipes of a service",
  description:
    "Requires the role `admin`. Changes the size of all database pipes of the service, for the initial load and for change data capture alike. Send one field, from which the API derives the other, or both. Returns the accepted size; a GET returns it as soon as every pipe has it, which takes seconds if the pods of all pipes can be resized in place, and otherwise a few minutes. During a boost, it changes the size after the boost. Scaling is available once a database pipe has been provisioned on the service.",
  isBeta: true,
  body: { schema: pipeScalingPatch, example: { replicaCpuMillicores: 4000, replicaMemoryGb: 16 } },
  result: pipeScaling,
  refusals: {
    400: `An ID in the path is not a UUID, the body is invalid, the size is above the limit of the organization's tier, or ${NO_PIPE}.`,
    404: READ_REFUSALS[404],
    409: "Scaling of the service is suspended.",
  },
} as const satisfies Operation;

export const getPipeScalingProgress = {
  method: "GET",
  path: `${SCALING_PATH}/progress`,
  id: "getPipeScalingProgress",
  tag: "Pipes",
  summary: "Get the progress of a rescale",
  description:
    "The number of pipes that run the last requested size, or that of the boost in effect, the pipes that failed to get it, with the reasons, and the request for it. Reflects a PATCH, normally within a second. Poll it every few seconds: it is served from memory, but counts toward the rate limit of the key.",
  isBeta: true,
  result: pipeScalingProgress,
  refusals: READ_REFUSALS,
} as const satisfies Operation;

const sizeJson = memoizeJson(toPipeScaling);

export interface PipeScalingDeps extends ScalingChangeDeps, HistoryDeps {
  readonly cache: TenantRecords & ScalingChangeDeps["cache"];
  readonly clock: Pick<Clock, "now">;
  readonly pathAliases: PathAliases;
  /** The largest size that can be requested; a tier can allow less. */
  readonly maximumSize: Size;
}

export function pipeScalingRouter(deps: PipeScalingDeps): Router {
  const { cache, clock, pathAliases, maximumSize } = deps;
  const body = pipeScalingPatch(maximumSize);
  const router = createRouter();
  router
    .route(expressPaths(SCALING_PATH, pathAliases))
    .get(authorize, (request, response) => {
      const { service } = serviceParams(request, cache);
      sendJsonResult(response, sizeJson(reachedSize(service, cache)));
    })
    .patch(authorize, async (request, response) => {
      const params = serviceParams(request, cache);
      const size = await readJsonBody(request, response, body);
      const requestedAt = new Date(clock.now()).toISOString();
      const requester = requesterOf(request, () => permitService(request, cache, params));
      const accepted = await requestSize(params, size, { ...requester, requestedAt }, deps);
      sendResult(response, toPipeScaling(accepted));
    })
    .all(methodNotAllowed);
  router
    .route(expressPaths(getPipeScalingProgress.path, pathAliases))
    .get(authorize, (request, response) => {
      const { service } = serviceParams(request, cache);
      sendResult(response, toPipeScalingProgress(scalingProgress(service, cache, clock.now())));
    })
    .all(methodNotAllowed);
  router
    .route(expressPaths(getPipeScalingLimits.path, pathAliases))
    .get(authorize, (request, response) => sendLimits(request, response, deps))
    .all(methodNotAllowed);
  router
    .route(expressPaths(getPipeScalingHistory.path, pathAliases))
    .get(authorize, (request, response) => sendHistory(request, response, deps))
    .all(methodNotAllowed);
  return router;
}
