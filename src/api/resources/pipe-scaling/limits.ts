import type { Request, Response } from "express";
import * as z from "zod";
import { rolloutWindowAt, WINDOW_SCOPES } from "../../../domain/rollout-window.ts";
import {
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
  type Size,
  sizeOfCores,
  smaller,
} from "../../../domain/size.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { PipeScalingView } from "../../cluster/views.ts";
import { sendResult } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { type ServiceParams, serviceParams, type TenantRecords } from "../path-params.ts";
import { instant } from "../schema-parts.ts";
import { requireScaling, type ScalingChangeDeps, type Scalings, tierOf } from "./change.ts";
import { READ_REFUSALS, SCALING_PATH } from "./operation-parts.ts";
import { pipeScaling, toPipeScaling } from "./schema.ts";

const rolloutWindow = z.strictObject({
  open: z.boolean().meta({ description: "False while the window holds resizes back." }),
  appliesTo: z.enum(WINDOW_SCOPES).meta({
    description:
      "The resizes that wait while the window is closed: `restarts`, for those that restart pods, or `all`, which includes those without a restart.",
  }),
  opensAt: instant
    .optional()
    .meta({ description: "The time until which resizes wait. Absent while the window is open." }),
});

export const pipeScalingLimits = z
  .strictObject({
    minimum: pipeScaling,
    maximum: pipeScaling,
    step: pipeScaling,
    default: pipeScaling,
    suspended: z
      .boolean()
      .meta({ description: "True while scaling of the service is suspended: a PATCH gets 409." }),
    rolloutWindow: rolloutWindow.optional().meta({
      description: "Absent if the service has no rollout window. Its resizes then never wait for one.",
    }),
  })
  .meta({
    id: "PipeScalingLimits",
    description:
      "The sizes that can be requested for the pipes of a service, and when they are applied. `minimum` is the smallest one, `maximum` the largest one that the platform and the tier of the organization allow, and `step` the difference between one and the next. `default` is the size of pipes for which none was requested, unless the first pipes of the service came with a size of their own.",
    examples: [
      {
        minimum: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
        maximum: { replicaCpuMillicores: 16_000, replicaMemoryGb: 64 },
        step: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
        default: { replicaCpuMillicores: 2000, replicaMemoryGb: 8 },
        suspended: false,
        rolloutWindow: { open: false, appliesTo: "restarts", opensAt: "2026-01-31T02:00:00.000Z" },
      },
    ],
  });

export const getPipeScalingLimits = {
  method: "GET",
  path: `${SCALING_PATH}/limits`,
  id: "getPipeScalingLimits",
  tag: "Pipes",
  summary: "Get the limits of the size of the pipes of a service",
  description:
    "The sizes that a PATCH of the service accepts, whether scaling is suspended, and whether a rollout window holds resizes back, and until when. It is served from memory.",
  isBeta: true,
  result: pipeScalingLimits,
  refusals: READ_REFUSALS,
} as const satisfies Operation;

export interface LimitsDeps extends Pick<ScalingChangeDeps, "tiers"> {
  /** The largest size of the platform. */
  readonly maximumSize: Size;
  readonly cache: TenantRecords & Scalings;
  readonly clock: Pick<Clock, "now">;
}

export function sendLimits(request: Request, response: Response, deps: LimitsDeps): void {
  const { cache, clock, tiers, maximumSize } = deps;
  const params = serviceParams(request, cache);
  const scaling = requireScaling(params.service, cache);
  const tier = tierOf(params.organization, tiers);
  sendResult(response, {
    minimum: toPipeScaling(sizeOfCores(CPU_MINIMUM_MILLICORES / 1000)),
    maximum: toPipeScaling(smaller(tier.maximumSize, maximumSize)),
    step: toPipeScaling(sizeOfCores(CPU_STEP_MILLICORES / 1000)),
    default: toPipeScaling(tier.defaultSize),
    suspended: scaling.suspended,
    ...windowOf(params, scaling, clock.now()),
  } satisfies z.infer<typeof pipeScalingLimits>);
}

/** The window of the service, or else of its organization, as for the controller. */
function windowOf({ service, organization }: ServiceParams, scaling: PipeScalingView, nowMs: number) {
  const window = service.rolloutWindow ?? organization.rolloutWindow;
  if (!window) return {};
  const { appliesTo } = window;
  const state = rolloutWindowAt(window, nowMs, scaling.windowIgnoredUntilMs);
  const opensAt = state.open ? {} : { opensAt: new Date(state.opensAtMs).toISOString() };
  return { rolloutWindow: { open: state.open, appliesTo, ...opensAt } };
}
