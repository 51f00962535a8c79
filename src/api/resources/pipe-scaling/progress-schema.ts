import * as z from "zod";
import { MAX_FAILURES, MAX_FALLBACKS } from "../../../crd/pipe-scaling.ts";
import type { Boost } from "../../../domain/boost.ts";
import type { Size } from "../../../domain/size.ts";
import { SIZE_SOURCES } from "../../../domain/tier.ts";
import { API_FALLBACK_REASONS, fallbackSentence } from "../../cluster/fallback-reasons.ts";
import { PROGRESS_STATES, type Progress } from "../../cluster/progress.ts";
import { REASONS, sentenceOf } from "../../cluster/reasons.ts";
import { instant, knownWords, reasonWord } from "../schema-parts.ts";
import { effectivePipeScaling, pipeScaling, toPipeScaling } from "./schema.ts";

/** The progress of a rescale, as the API returns it (docs/adr/0017). */

const reason = reasonWord(REASONS);
const message = z.string().meta({ description: "The reason as a sentence, for people." });
const pipes = z.int().min(0);
const pipe = z.string().meta({
  description:
    "The name of the pipe. That of a StatefulSet, such as a pipe for the initial load, begins with `statefulset/`.",
});

const failure = z.strictObject({
  pipe,
  size: pipeScaling.optional().meta({ description: "The size that could not be applied." }),
  reason,
  message,
  attempts: z.int().min(0).meta({ description: "Number of attempts." }),
  at: instant.optional(),
  nextRetryAt: instant
    .optional()
    .meta({ description: "Time of the next attempt. Absent if there is no automatic retry." }),
});

const fallback = z.strictObject({
  pipe,
  reason: reasonWord(API_FALLBACK_REASONS),
  message,
});

export const pipeScalingProgress = z
  .strictObject({
    state: z.enum(PROGRESS_STATES).meta({
      description:
        "`propagating`: the size is being applied, or is about to be. `scaled`: every pipe runs it. `failed`: it could not be applied to at least one pipe; some failures are retried later. `suspended`: nothing is changed.",
    }),
    reason,
    message,
    desired: pipeScaling
      .extend({
        source: z
          .string()
          .meta({ description: `The source of the size, in one word. ${knownWords(SIZE_SOURCES)}` }),
      })
      .optional()
      .meta({
        description:
          "The size that every pipe should have, and its source: the request, the boost, the default of the organization's tier, or the maximum of the tier. Absent while it is not known yet, such as for a moment after the first pipe of a service appears.",
      }),
    boost: pipeScaling
      .extend({
        until: instant.meta({ description: "End of the boost." }),
        remainingSeconds: z.int().min(0).meta({ description: "Time left until then, in seconds." }),
      })
      .optional()
      .meta({ description: "The boost in effect. Absent if there is none, or if it has ended." }),
    effective: effectivePipeScaling
      .optional()
      .meta({ description: "The last size that all pipes had at the same time. Absent until there is one." }),
    pipes: z
      .strictObject({
        total: pipes.meta({ description: "Database pipes of the service." }),
        updated: pipes.meta({ description: "Pipes that run the desired size." }),
        inPlace: pipes.optional().meta({
          description:
            "Updated pipes that were resized in place, without a restart. Absent if there are none.",
        }),
      })
      .optional()
      .meta({
        description:
          "Absent while the pipes are not counted yet, such as for a moment after the first pipe of a service appears.",
      }),
    failures: z
      .array(failure)
      .max(MAX_FAILURES)
      .meta({ description: `Pipes that failed to reach the desired size, at most ${MAX_FAILURES}.` }),
    fallbacks: z
      .array(fallback)
      .max(MAX_FALLBACKS)
      .optional()
      .meta({
        description: `Pipes that restart because they could not be resized in place, at most ${MAX_FALLBACKS}. Absent if there are none.`,
      }),
    requestId: z.string().optional().meta({
      description:
        "The ID of the request for the desired size; during a boost, that of the boost. If it is not yours in two reads some seconds apart, a later request superseded yours, or a boost has begun or ended. Absent if the size did not come from a request.",
    }),
    startedAt: instant.optional().meta({
      description: "Time at which the controller first saw the desired size, or the request for it.",
    }),
    completedAt: instant.optional().meta({ description: "Time at which every pipe had the size." }),
  })
  .meta({
    id: "PipeScalingProgress",
    description: "The progress of the pipes of a service toward a size.",
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

/** The progress at a time. */
export interface ProgressAt {
  readonly progress: Progress;
  readonly effective: Size | undefined;
  /** The boost in effect. */
  readonly boost: Boost | undefined;
  readonly nowMs: number;
}

export function toPipeScalingProgress({
  progress,
  effective,
  boost,
  nowMs,
}: ProgressAt): PipeScalingProgressObject {
  const { state, reason, desired, pipes, failures, fallbacks, requestId } = progress;
  const { startedAtMs, completedAtMs } = progress;
  return {
    state,
    reason,
    message: sentenceOf(reason),
    ...(desired ? { desired: { ...toPipeScaling(desired.size), source: desired.source } } : {}),
    ...(boost ? { boost: toBoost(boost, nowMs) } : {}),
    ...(effective ? { effective: toPipeScaling(effective) } : {}),
    ...(pipes ? { pipes } : {}),
    failures: failures.map(toFailure),
    ...(fallbacks.length > 0 ? { fallbacks: fallbacks.map(toFallback) } : {}),
    ...(requestId === undefined ? {} : { requestId }),
    ...(startedAtMs === undefined ? {} : { startedAt: iso(startedAtMs) }),
    ...(completedAtMs === undefined ? {} : { completedAt: iso(completedAtMs) }),
  };
}

function toBoost({ size, untilMs }: Boost, nowMs: number) {
  const remainingSeconds = Math.ceil((untilMs - nowMs) / 1000);
  return { ...toPipeScaling(size), until: iso(untilMs), remainingSeconds };
}

function toFailure({ pipe, size, reason, attempts, atMs, nextRetryAtMs }: Progress["failures"][number]) {
  return {
    pipe,
    ...(size ? { size: toPipeScaling(size) } : {}),
    reason,
    message: sentenceOf(reason),
    attempts,
    ...(atMs === undefined ? {} : { at: iso(atMs) }),
    ...(nextRetryAtMs === undefined ? {} : { nextRetryAt: iso(nextRetryAtMs) }),
  };
}

function toFallback({ pipe, reason }: Progress["fallbacks"][number]) {
  return { pipe, reason, message: fallbackSentence(reason) };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
