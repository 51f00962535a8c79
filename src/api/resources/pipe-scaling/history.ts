import type { Request, Response } from "express";
import * as z from "zod";
import { PIPE_SCALINGS } from "../../../crd/names.ts";
import { type HistoryEntry, MAX_HISTORY } from "../../../crd/pipe-scaling.ts";
import { sizeOf } from "../../../crd/size-fields.ts";
import { parseInstant } from "../../../domain/instant.ts";
import { SIZE_SOURCES } from "../../../domain/tier.ts";
import { objectPath } from "../../../kube/paths.ts";
import type { LiveReader } from "../../cluster/live-reader.ts";
import type { PipeScalingResource } from "../../cluster/views.ts";
import { sendResult } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { permitService, serviceParams, type TenantRecords } from "../path-params.ts";
import { instant, knownWords } from "../schema-parts.ts";
import { requireProvisioned, type Scalings } from "./change.ts";
import { READ_REFUSALS, SCALING_PATH } from "./operation-parts.ts";
import { pipeScaling, toPipeScaling } from "./schema.ts";

export const pipeScalingChange = pipeScaling
  .extend({
    source: z.string().meta({
      description: `The source of the size, in one word: the request, a boost, or the default or the maximum of the tier. ${knownWords(SIZE_SOURCES)}`,
    }),
    result: z.enum(["propagating", "scaled", "superseded", "failed"]).meta({
      description:
        "`propagating`: the size is being applied, or no pipe has replicas that could run it. `scaled`: every pipe ran it. `superseded`: another size replaced it before every pipe ran it. `failed`: it could not be applied to at least one pipe, or the pipes ran out of memory with it; the result can still become `scaled`.",
    }),
    requestId: z.string().optional().meta({
      description: "The ID of the last request for the size. Absent if it did not come from a request.",
    }),
    startedAt: instant.meta({ description: "Time at which the change began." }),
    completedAt: instant.optional().meta({ description: "Time at which every pipe first ran the size." }),
  })
  .meta({
    id: "PipeScalingChange",
    description: "A size that the pipes of a service got, or were meant to get.",
    examples: [
      {
        replicaCpuMillicores: 4000,
        replicaMemoryGb: 16,
        source: "Spec",
        result: "scaled",
        requestId: "0b7f6c1e-3a52-4d0a-9c1b-5f0e7a7d2c11",
        startedAt: "2026-01-31T12:00:00.000Z",
        completedAt: "2026-01-31T12:04:00.000Z",
      },
    ],
  });

type PipeScalingChangeObject = z.infer<typeof pipeScalingChange>;

export const getPipeScalingHistory = {
  method: "GET",
  path: `${SCALING_PATH}/history`,
  id: "getPipeScalingHistory",
  tag: "Pipes",
  summary: "List the last sizes of the pipes of a service",
  description: `The last ${MAX_HISTORY} sizes of the pipes, newest first. A request appears as soon as the controller has seen it. One that repeats the newest size adds no entry. The list is read from the cluster for each call, so poll \`GET …/pipesCdcScaling/progress\` instead to watch a rescale.`,
  isBeta: true,
  result: z.array(pipeScalingChange).max(MAX_HISTORY),
  refusals: READ_REFUSALS,
} as const satisfies Operation;

export interface HistoryDeps {
  readonly cache: TenantRecords & Pick<Scalings, "hasHadScaling">;
  readonly liveReader: Pick<LiveReader, "read">;
}

export async function sendHistory(
  request: Request,
  response: Response,
  { cache, liveReader }: HistoryDeps,
): Promise<void> {
  const params = serviceParams(request, cache);
  const { service } = params;
  const resource = await liveReader.read<PipeScalingResource>(
    objectPath(PIPE_SCALINGS, service.namespace, service.id),
  );
  permitService(request, cache, params);
  const { status } = requireProvisioned(resource, service, cache);
  sendResult(response, (status?.history ?? []).flatMap(toChange));
}

const RESULTS: ReadonlyMap<string, PipeScalingChangeObject["result"]> = new Map([
  ["Progressing", "propagating"],
  ["Scaled", "scaled"],
  ["Superseded", "superseded"],
  ["Failed", "failed"],
]);

/**
 * Returns no change for an entry whose start is not a time, or whose result only a later version of the controller knows,
 * because clients rely on both.
 */
function toChange(entry: HistoryEntry): readonly PipeScalingChangeObject[] {
  const { source, requestId } = entry;
  const startedAt = utc(entry.startedAt);
  const completedAt = utc(entry.completedAt);
  const result = RESULTS.get(entry.result);
  if (startedAt === undefined || result === undefined) return [];
  const change = {
    ...toPipeScaling(sizeOf(entry)),
    source,
    result,
    ...(requestId === undefined ? {} : { requestId }),
    startedAt,
    ...(completedAt === undefined ? {} : { completedAt }),
  };
  return [change];
}

/** Returns `undefined` for a time that does not exist: the CRD accepts any offset, such as +99:99. */
function utc(dateTime: string | undefined): string | undefined {
  const ms = parseInstant(dateTime);
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString();
}
