import type { Clock } from "../../runtime/clock.ts";
import { readBody } from "../body.ts";
import { type Records, serviceAt } from "../places.ts";
import type { Route } from "../routes.ts";
import { reachedSize, requestSize, type ScalingDeps } from "../scaling.ts";
import { type PipeScalingObject, pipeScalingPatch, toPipeScaling } from "../schemas.ts";

const path = "/v1/organizations/{organizationId}/services/{serviceId}/pipesCdcScaling";

export function pipeScalingRoutes(records: Records, clock: Clock, scaling: ScalingDeps): readonly Route[] {
  return [
    {
      method: "GET",
      path,
      serve(call): PipeScalingObject {
        return toPipeScaling(reachedSize(serviceAt(call, records), scaling));
      },
    },
    {
      method: "PATCH",
      path,
      async serve(call): Promise<PipeScalingObject> {
        const place = serviceAt(call, records);
        const size = await readBody(call.request, pipeScalingPatch);
        const requestedAt = new Date(clock.now()).toISOString();
        const origin = { requestId: call.requestId, apiKey: call.key.id, requestedAt };
        return toPipeScaling(await requestSize(place, size, origin, scaling));
      },
    },
  ];
}
