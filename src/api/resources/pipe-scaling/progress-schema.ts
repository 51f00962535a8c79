import * as z from "zod";
import { MAX_FAILURES } from "../../../crd/pipe-scaling.ts";
import type { Size } from "../../../domain/size.ts";
import type { Progress } from "../../cluster/progress.ts";
import { REASONS, sentenceOf } from "../../cluster/reasons.ts";
import { instant } from "../schema-parts.ts";
import { pipeScaling, toPipeScaling } from "./schema.ts";

/** How far a rescale has come, on the wire (docs/adr/0017). */

const reason = z.enum(REASONS).meta({ description: "One word that says why, for programs." });
const message = z.string().meta({ description: "A sentence that says why, for people." });
const pipes = z.int().min(0);

const failure = z.strictObject({
  pipe: z.string().meta({ description: "The name of the pipe." }),
  size: pipeScaling.optional().meta({ description: "The size that it could not be given." }),
  reason,
  message,
  attempts: z.int().min(0).meta({ description: "How often it was tried." }),
  at: instant.optional(),
});

export const pipeScalingProgress = z
  .strictObject({
    state: z.enum(["propagating", "scaled", "failed", "suspended"]).meta({
      description:
        "`propagating`: pipes are on their way to the size, or are about to be. `scaled`: every pipe runs it. `failed`: at least one pipe could not be given it; some are tried again later. `suspended`: nothing is changed.",
    }),
    reason,
    message,
    desired: pipeScaling
      .extend({ source: z.enum(["Spec", "TierDefault", "TierLimit"]) })
      .optional()
      .meta({
        description:
          "The size that every pipe is to have, and what decided it: what was asked for, the default of the organization's tier, or the most that the tier allows. Absent for a moment after a service's first pipe has appeared.",
      }),
    effective: pipeScaling
      .optional()
      .meta({ description: "The last size that every pipe had at once. Absent until there is one." }),
    pipes: z
      .strictObject({
        total: pipes.meta({ description: "Database pipes of the service." }),
        updated: pipes.meta({ description: "Those that run the desired size." }),
      })
      .optional()
      .meta({ description: "Absent for a moment after a service's first pipe has appeared." }),
    failures: z
      .array(failure)
      .max(MAX_FAILURES)
      .meta({ description: `Pipes that stand in the way of the desired size, ${MAX_FAILURES} at most.` }),
    requestId: z.string().optional().meta({
      description:
        "The request that asked for the desired size. Another one than yours: yours was superseded. Absent where the size came by no request.",
    }),
    startedAt: instant.optional().meta({ description: "When the first pipe's turn came." }),
    completedAt: instant.optional().meta({ description: "When every pipe had the size." }),
  })
  .meta({
    id: "PipeScalingProgress",
    description: "How far the pipes of a service have come on their way to a size.",
    examples: [
      {
        state: "propagating",
        reason: "Progressing",
        message: sentenceOf("Progressing"),
        desired: { replicaCpuMillicores: 4000, replicaMemoryGb: 16, source: "Spec" },
        effective: { replicaCpuMillicores: 1000, replicaMemoryGb: 4 },
        pipes: { total: 5, updated: 2 },
        failures: [],
        requestId: "0b7f6c1e-3a52-4d0a-9c1b-5f0e7a7d2c11",
        startedAt: "2026-01-31T12:00:00.000Z",
      },
    ],
  });

export type PipeScalingProgressObject = z.infer<typeof pipeScalingProgress>;

export function toPipeScalingProgress(
  progress: Progress,
  effective: Size | undefined,
): PipeScalingProgressObject {
  const { state, reason, desired, pipes, failures, requestId, startedAtMs, completedAtMs } = progress;
  return {
    state,
    reason,
    message: sentenceOf(reason),
    ...(desired ? { desired: { ...toPipeScaling(desired.size), source: desired.source } } : {}),
    ...(effective ? { effective: toPipeScaling(effective) } : {}),
    ...(pipes ? { pipes } : {}),
    failures: failures.map(toFailure),
    ...(requestId === undefined ? {} : { requestId }),
    ...(startedAtMs === undefined ? {} : { startedAt: iso(startedAtMs) }),
    ...(completedAtMs === undefined ? {} : { completedAt: iso(completedAtMs) }),
  };
}

function toFailure({ pipe, size, reason, attempts, atMs }: Progress["failures"][number]) {
  return {
    pipe,
    ...(size ? { size: toPipeScaling(size) } : {}),
    reason,
    message: sentenceOf(reason),
    attempts,
    ...(atMs === undefined ? {} : { at: iso(atMs) }),
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
