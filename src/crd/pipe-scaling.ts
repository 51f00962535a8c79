import * as z from "zod";
import { RESIZE_STRATEGIES } from "../domain/resize-strategy.ts";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
  GIB_PER_CORE,
  MEMORY_MAXIMUM_GIB,
  MEMORY_MINIMUM_GIB,
  MEMORY_STEP_GIB,
} from "../domain/size.ts";
import { SIZE_SOURCES } from "../domain/tier.ts";

/**
 * The schema of PipeScaling, from which the TypeScript types and (in manifest.ts) the CRD in crds/ are derived.
 * Keys that start with `x-kubernetes-` are copied into the CRD.
 */

/**
 * A rule about both size fields, which only the schema of the object around them can express. It does not apply while both
 * fields are unchanged, so that a later, stricter rule never blocks `suspend: true` on an old object.
 */
function aboutSize(rule: string, message: string) {
  // Without `orValue`, Kubernetes 1.32 estimates that the comparison costs too much, and refuses the CRD.
  const isSame = (field: string) => `oldSelf.value().?${field}.orValue(0) == self.?${field}.orValue(0)`;
  const unchanged = `oldSelf.hasValue() && ${isSame("replicaCpuMillicores")} && ${isSame("replicaMemoryGb")}`;
  return { rule: `(${unchanged}) || (${rule})`, message, optionalOldSelf: true };
}

/** More than the controller writes, for those of other tools. */
export const MAX_CONDITIONS = 8;
export const MAX_FAILURES = 20;
export const MAX_HISTORY = 10;
export const MAX_PENDING = 20;
export const MAX_FALLBACKS = 20;
export const MAX_METHODS = 1000;

// Lengths in characters: they bound the status that a stolen token of the controller can write.

/** As of the names of Kubernetes objects. */
export const MAX_NAME_LENGTH = 253;
/** For a message about one pipe. */
export const MAX_MESSAGE_LENGTH = 1024;
/** It can contain messages and names of several pipes. */
export const MAX_CONDITION_MESSAGE_LENGTH = 8192;
/** For a size, an identifier or a time. */
export const MAX_WORD_LENGTH = 128;

const name = z.string().max(MAX_NAME_LENGTH);
const message = z.string().max(MAX_MESSAGE_LENGTH);
const word = z.string().max(MAX_WORD_LENGTH);
/** The names of pipes as keys, whose length only a rule can restrict. */
const keys = {
  "x-kubernetes-validations": [
    {
      rule: `self.all(name, size(name) <= ${MAX_NAME_LENGTH})`,
      message: `a name has at most ${MAX_NAME_LENGTH} characters`,
    },
  ],
};

const sizeFields = z.object({
  replicaCpuMillicores: z.int().meta({ description: "CPU of each replica, in millicores." }),
  replicaMemoryGb: z.int().meta({ description: "Memory of each replica, in GiB." }),
  summary: word.meta({ description: "The size for people, such as `4 cpu / 16 Gi`." }),
});

const dateTime = word.meta({ format: "date-time" });

const sizeSource = z.enum(SIZE_SOURCES);

const cpu = z.int().min(CPU_MINIMUM_MILLICORES).max(CPU_MAXIMUM_MILLICORES).multipleOf(CPU_STEP_MILLICORES);
const memory = z.int().min(MEMORY_MINIMUM_GIB).max(MEMORY_MAXIMUM_GIB).multipleOf(MEMORY_STEP_GIB);
const CPU = `CPU of each replica of each database pipe, in millicores: ${CPU_MINIMUM_MILLICORES} to ${CPU_MAXIMUM_MILLICORES} in steps of ${CPU_STEP_MILLICORES}.`;
const MEMORY = `Memory of each replica of each database pipe, in GiB: ${MEMORY_MINIMUM_GIB} to ${MEMORY_MAXIMUM_GIB} in steps of ${MEMORY_STEP_GIB}, and exactly ${GIB_PER_CORE} for each core.`;

const RATIO_RULE = `self.replicaMemoryGb * ${1000 / GIB_PER_CORE} == self.replicaCpuMillicores`;
const RATIO = `replicaMemoryGb must be exactly ${GIB_PER_CORE} for each core: ${GIB_PER_CORE} for 1000 millicores, 16 for 4000`;

/** The size of a boost and its end belong together, so one writer owns both (docs/adr/0040). */
const boost = z
  .object({
    replicaCpuMillicores: cpu.meta({ description: CPU }),
    replicaMemoryGb: memory.meta({ description: MEMORY }),
    // JavaScript parses less than the API server takes for a date-time.
    until: dateTime.meta({
      pattern: "^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}(\\.\\d+)?(Z|[+-]\\d{2}:\\d{2})$",
      description: "End of the boost, such as 2026-01-31T20:00:00Z. From then on, the boost has no effect.",
    }),
  })
  .meta({
    description:
      "A size that takes the place of the requested one until a time, for example for an initial load. The pipes then return to the size that the rest of the spec requests. An ended boost stays in the spec and has no effect; status.boost shows the one in effect.",
    "x-kubernetes-map-type": "atomic",
    "x-kubernetes-validations": [aboutSize(RATIO_RULE, RATIO)],
  });

const spec = z
  .object({
    replicaCpuMillicores: cpu.optional().meta({
      description: `${CPU} Requires replicaMemoryGb; if both are omitted, the organization's tier determines the size.`,
    }),
    replicaMemoryGb: memory.optional().meta({ description: MEMORY }),
    boost: boost.optional(),
    strategy: z.enum(RESIZE_STRATEGIES).optional().meta({
      description:
        "How pipes are resized. InPlaceOrRollout changes running pods without a restart, and replaces the pods of a pipe where that is not possible. InPlace never replaces pods: a pipe that cannot be resized in place keeps its size, and the status says why. Rollout always replaces them. Without it, the setting of the controller applies.",
    }),
    suspend: z.boolean().optional().meta({
      description: "While true, the controller does not change the pipes and only reports their state.",
    }),
  })
  .meta({
    description: "The requested size of all database pipes of the service that this resource is named after.",
    "x-kubernetes-validations": [
      aboutSize(
        "has(self.replicaCpuMillicores) == has(self.replicaMemoryGb)",
        "replicaCpuMillicores and replicaMemoryGb must be set together: set both, or neither for the default of the tier",
      ),
      aboutSize(`!has(self.replicaCpuMillicores) || !has(self.replicaMemoryGb) || ${RATIO_RULE}`, RATIO),
    ],
  });

/** A Deployment and a StatefulSet can have the same name. */
const pipeName = name.meta({
  description: "Name of the Deployment, or `statefulset/` and the name of the StatefulSet.",
});

const condition = z.object({
  type: word.meta({ description: "Ready, Reconciling or Stalled." }),
  status: z.enum(["True", "False", "Unknown"]),
  observedGeneration: z.int().optional(),
  lastTransitionTime: dateTime,
  reason: word.meta({ description: "Reason as one word, for programs." }),
  message: z
    .string()
    .max(MAX_CONDITION_MESSAGE_LENGTH)
    .meta({ description: "Reason as a sentence, for people." }),
});

const failure = z.object({
  pipe: pipeName,
  size: sizeFields.meta({ description: "Size that could not be applied." }),
  reason: word,
  message,
  attempts: z.int().meta({ description: "Number of attempts with this size." }),
  at: dateTime,
  nextRetryAt: dateTime
    .optional()
    .meta({ description: "Time of the next attempt; absent if there is no automatic retry." }),
});

const pendingPipe = z.object({
  name: pipeName,
  state: z.enum(["Waiting", "Rolling", "Resized", "Retrying", "Failed", "Paused", "Unsizable"]),
  reason: word.optional().meta({
    description: "Why a pipe that waits with the strategy InPlace cannot be resized in place, as one word.",
  }),
  message: message.optional().meta({ description: "The reason for waiting, or the error." }),
});

const fallback = z.object({
  pipe: pipeName,
  reason: word,
  message,
});

const historyEntry = sizeFields.extend({
  source: sizeSource.meta({ description: "Origin of the size." }),
  result: z.enum(["Progressing", "Scaled", "Superseded", "Failed"]).meta({
    description:
      "Scaled: every pipe ran the size, and at least one pipe has replicas. Superseded: another size or request came first. Failed: a pipe cannot take the size; it can still become Scaled.",
  }),
  requestId: word.optional().meta({ description: "API request for the size." }),
  startedAt: dateTime,
  completedAt: dateTime.optional().meta({ description: "Time at which every pipe first ran the size." }),
});

const status = z
  .object({
    observedGeneration: z.int().optional().meta({ description: "Generation that this status describes." }),
    conditions: z
      .array(condition)
      .max(MAX_CONDITIONS)
      .optional()
      .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] }),
    desired: sizeFields
      .extend({ source: sizeSource })
      .optional()
      .meta({ description: "Desired size of the pipes, and its source." }),
    boost: sizeFields
      .extend({ until: dateTime.meta({ description: "End of the boost." }) })
      .optional()
      .meta({
        description: "The boost in effect, with its end. Absent if there is none, or if it has ended.",
      }),
    effective: sizeFields.optional().meta({ description: "Last size that every pipe ran at the same time." }),
    pipes: z
      .object({
        total: z.int().meta({ description: "Database pipes of the service." }),
        updated: z.int().meta({ description: "Pipes whose pods run the desired size." }),
        summary: word.meta({ description: "Updated of total, such as `2/5`." }),
        pending: z
          .array(pendingPipe)
          .max(MAX_PENDING)
          .optional()
          .meta({
            description: `Pipes that do not run the desired size yet, with the reason, at most ${MAX_PENDING}.`,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
          }),
        inPlace: z.int().optional().meta({
          description:
            "Updated pipes whose running pods were resized without a restart; absent if there are none.",
        }),
        resizedBy: z
          .record(name, z.enum(["InPlace", "Rollout"]))
          .optional()
          .meta({
            maxProperties: MAX_METHODS,
            ...keys,
            description: `How each pipe whose pods and template have the desired size got it, for at most ${MAX_METHODS} pipes: by a resize of its running pods, or by a rollout. Pipes that had the size before are not listed.`,
          }),
        fallbacks: z
          .array(fallback)
          .max(MAX_FALLBACKS)
          .optional()
          .meta({
            description: `Pipes that get the desired size by a rollout because they cannot be resized in place, with the reason, at most ${MAX_FALLBACKS}.`,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["pipe"],
          }),
      })
      .optional(),
    replicas: z.int().optional().meta({ description: "Replicas of all pipes together." }),
    computeUnits: z.number().optional().meta({
      description: "Compute units at the desired size, for billing: one unit is 2 cores with 8 GiB.",
    }),
    tier: name.optional().meta({ description: "Tier of the organization." }),
    propagation: z
      .object({
        requestId: word.optional().meta({ description: "Request for the desired size." }),
        startedAt: dateTime,
        completedAt: dateTime.optional(),
      })
      .optional()
      .meta({ description: "The last rescale." }),
    history: z
      .array(historyEntry)
      .max(MAX_HISTORY)
      .optional()
      .meta({
        "x-kubernetes-list-type": "atomic",
        description: `The last ${MAX_HISTORY} changes of size, newest first.`,
      }),
    limits: z
      .object({
        service: z.int().meta({ description: "Maximum number of concurrent rollouts in this service." }),
        overall: z.int().meta({ description: "Maximum number of concurrent rollouts in all services." }),
        rolloutTimeoutSeconds: z
          .int()
          .meta({ description: "Time after which a rollout has failed, in seconds." }),
      })
      .optional()
      .meta({ description: "Limits of rollouts." }),
    failures: z
      .array(failure)
      .max(MAX_FAILURES)
      .optional()
      .meta({ description: `Pipes that block the desired size, at most ${MAX_FAILURES}.` }),
  })
  // Without it, kstatus would report a resource as ready before the controller has observed it.
  .meta({ default: { observedGeneration: -1 } });

export const pipeScalingSchema = z.object({ spec: spec.optional(), status: status.optional() }).meta({
  description:
    "PipeScaling is the size of all database pipes of one service. Its name is the ID of the service, and its namespace is the namespace of the service's pipes.",
});

export type PipeScalingSpec = z.infer<typeof spec>;
export type PipeScalingStatus = z.infer<typeof status>;
export type Condition = z.infer<typeof condition>;
export type PipeFailure = z.infer<typeof failure>;
export type HistoryEntry = z.infer<typeof historyEntry>;
export type PendingPipe = z.infer<typeof pendingPipe>;
export type PipeFallback = z.infer<typeof fallback>;
export type ResizeMethod = NonNullable<NonNullable<PipeScalingStatus["pipes"]>["resizedBy"]>[string];

/** A PipeScaling without its metadata. */
export interface PipeScaling {
  readonly spec?: PipeScalingSpec;
  readonly status?: PipeScalingStatus;
}
