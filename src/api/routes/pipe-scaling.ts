import type { Clock } from "../../runtime/clock.ts";
import { readBody } from "../body.ts";
import {
  type PipeScalingObject,
  pipeScaling,
  pipeScalingPatch,
  toPipeScaling,
} from "../pipe-scaling-schema.ts";
import { type Records, serviceAt } from "../places.ts";
import {
  type PipeScalingProgressObject,
  pipeScalingProgress,
  toPipeScalingProgress,
} from "../progress-schema.ts";
import type { Operation, Route } from "../routes.ts";
import { reachedSize, requestSize, type ScalingDeps, scalingProgress } from "../scaling.ts";

export const SCALING_PATH = "/v1/organizations/{organizationId}/services/{serviceId}/pipesCdcScaling";

const NOT_FOUND = "There is no such organization, or it is not the key's own; or it has no such service.";
const NO_PIPE = "no database pipe has ever been provisioned on the service";

const read = {
  id: "getPipeScaling",
  tag: "Pipes",
  summary: "Get the size of the pipes of a service",
  description:
    "The size that every database pipe of the service has really reached, not the one that was asked for last: while a change is under way, the last size that all of them had.",
  isBeta: true,
  result: pipeScaling,
  refusals: { 400: `An id in the path is no UUID, or ${NO_PIPE}.`, 404: NOT_FOUND },
} as const satisfies Operation;

const update = {
  id: "updatePipeScaling",
  tag: "Pipes",
  summary: "Scale the pipes of a service",
  description:
    "For keys with the role `admin`. Changes the size of all database pipes of the service, which they have for the initial load and for change data capture alike. One field is enough, the other follows from it. The answer is the accepted size; until every pipe has it takes a few minutes, and a GET tells. Scaling is available once a database pipe has been provisioned on the service.",
  isBeta: true,
  body: pipeScalingPatch,
  result: pipeScaling,
  refusals: {
    400: `An id in the path is no UUID, the body is not one that is allowed, the size is above what the organization's tier allows, or ${NO_PIPE}.`,
    404: NOT_FOUND,
    409: "Scaling of the service is suspended.",
  },
} as const satisfies Operation;

const readProgress = {
  id: "getPipeScalingProgress",
  tag: "Pipes",
  summary: "See how far a rescale has come",
  description:
    "How many pipes of the service run the size that was asked for last, which of them cannot be given it and why, and which request it was. After a PATCH it tells of that size at once. Ask again every few seconds: it is answered from memory, but counts as a request of the key.",
  isBeta: true,
  result: pipeScalingProgress,
  refusals: { 400: `An id in the path is no UUID, or ${NO_PIPE}.`, 404: NOT_FOUND },
} as const satisfies Operation;

export function pipeScalingRoutes(records: Records, clock: Clock, scaling: ScalingDeps): readonly Route[] {
  return [
    {
      method: "GET",
      path: SCALING_PATH,
      operation: read,
      serve(call): PipeScalingObject {
        return toPipeScaling(reachedSize(serviceAt(call, records), scaling));
      },
    },
    {
      method: "PATCH",
      path: SCALING_PATH,
      operation: update,
      async serve(call): Promise<PipeScalingObject> {
        const place = serviceAt(call, records);
        const size = await readBody(call.request, update.body);
        const requestedAt = new Date(clock.now()).toISOString();
        const origin = { requestId: call.requestId, apiKey: call.key.id, requestedAt };
        return toPipeScaling(await requestSize(place, size, origin, scaling));
      },
    },
    {
      method: "GET",
      path: `${SCALING_PATH}/progress`,
      operation: readProgress,
      serve(call): PipeScalingProgressObject {
        const { progress, effective } = scalingProgress(serviceAt(call, records), scaling);
        return toPipeScalingProgress(progress, effective);
      },
    },
  ];
}
