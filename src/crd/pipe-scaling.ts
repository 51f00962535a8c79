import * as z from "zod";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
  GIB_PER_CORE,
  MEMORY_MAXIMUM_GIB,
  MEMORY_MINIMUM_GIB,
  MEMORY_STEP_GIB,
} from "../domain/size.ts";

/**
 * The one schema of PipeScaling: the TypeScript types, and (by manifest.ts) the CRD in crds/, come from it.
 * Keys that start with `x-kubernetes-` go into the CRD as they are.
 */

/**
 * A rule about both size fields, which only the spec as a whole can state. It holds its tongue when the
 * two fields are as they were, so that a later, tighter rule never blocks `suspend: true` on an old object.
 */
function aboutSize(rule: string, message: string) {
  const unchanged =
    "oldSelf.hasValue() && oldSelf.value().?replicaCpuMillicores == self.?replicaCpuMillicores" +
    " && oldSelf.value().?replicaMemoryGb == self.?replicaMemoryGb";
  return { rule: `(${unchanged}) || (${rule})`, message, optionalOldSelf: true };
}

const sizeFields = z.object({
  replicaCpuMillicores: z.int().meta({ description: "CPU of each replica, in millicores." }),
  replicaMemoryGb: z.int().meta({ description: "Memory of each replica, in GiB." }),
  summary: z.string().meta({ description: "The size for people, such as `4 cpu / 16 Gi`." }),
});

const dateTime = z.string().meta({ format: "date-time" });

const sizeSource = z.enum(["Spec", "TierDefault", "TierLimit"]);

const spec = z
  .object({
    replicaCpuMillicores: z
      .int()
      .min(CPU_MINIMUM_MILLICORES)
      .max(CPU_MAXIMUM_MILLICORES)
      .multipleOf(CPU_STEP_MILLICORES)
      .optional()
      .meta({
        description: `CPU of each replica of each database pipe, in millicores: ${CPU_MINIMUM_MILLICORES} to ${CPU_MAXIMUM_MILLICORES} in steps of ${CPU_STEP_MILLICORES}. Goes with replicaMemoryGb; without both the organization's tier decides.`,
      }),
    replicaMemoryGb: z
      .int()
      .min(MEMORY_MINIMUM_GIB)
      .max(MEMORY_MAXIMUM_GIB)
      .multipleOf(MEMORY_STEP_GIB)
      .optional()
      .meta({
        description: `Memory of each replica of each database pipe, in GiB: ${MEMORY_MINIMUM_GIB} to ${MEMORY_MAXIMUM_GIB} in steps of ${MEMORY_STEP_GIB}, and exactly ${GIB_PER_CORE} for each core.`,
      }),
    suspend: z.boolean().optional().meta({
      description: "While true the controller leaves the pipes as they are and only reports their state.",
    }),
  })
  .meta({
    description: "The size wanted for all database pipes of the service that this resource is named after.",
    "x-kubernetes-validations": [
      aboutSize(
        "has(self.replicaCpuMillicores) == has(self.replicaMemoryGb)",
        "replicaCpuMillicores and replicaMemoryGb go together: set both, or neither for the tier's default",
      ),
      aboutSize(
        `!has(self.replicaCpuMillicores) || !has(self.replicaMemoryGb) || self.replicaMemoryGb * ${1000 / GIB_PER_CORE} == self.replicaCpuMillicores`,
        `replicaMemoryGb must be exactly ${GIB_PER_CORE} for each core: ${GIB_PER_CORE} for 1000 millicores, 16 for 4000`,
      ),
    ],
  });

const condition = z.object({
  type: z.string().meta({ description: "Ready, Reconciling or Stalled." }),
  status: z.enum(["True", "False", "Unknown"]),
  observedGeneration: z.int().optional(),
  lastTransitionTime: dateTime,
  reason: z.string().meta({ description: "One word that says why, for programs." }),
  message: z.string().meta({ description: "A sentence that says why, for people." }),
});

const failure = z.object({
  pipe: z.string().meta({ description: "Name of the Deployment." }),
  uid: z.string().optional().meta({ description: "UID of the Deployment." }),
  size: z.string().meta({ description: "The size that it could not be given." }),
  reason: z.string(),
  message: z.string(),
  attempts: z.int().meta({ description: "How often this size was tried." }),
  at: dateTime,
  nextRetryAt: dateTime
    .optional()
    .meta({ description: "Time of the next attempt; absent if only a person or another size can help." }),
  generation: z.int().optional().meta({ description: "Generation of the Deployment that was refused." }),
});

const pendingPipe = z.object({
  name: z.string().meta({ description: "Name of the Deployment." }),
  state: z.enum(["Waiting", "Rolling", "Retrying", "Failed", "Paused", "Unsizable"]),
  message: z.string().optional().meta({ description: "The reason for waiting, or the error." }),
});

const historyEntry = sizeFields.extend({
  source: sizeSource.meta({ description: "Origin of the size." }),
  result: z.enum(["Progressing", "Scaled", "Superseded", "Failed"]).meta({
    description:
      "Scaled: every pipe ran the size. Superseded: another size or request came first. Failed: a pipe cannot take the size; it can still become Scaled.",
  }),
  requestId: z.string().optional().meta({ description: "API request that asked for the size." }),
  startedAt: dateTime,
  completedAt: dateTime.optional().meta({ description: "Time at which every pipe first ran the size." }),
});

export const MAX_FAILURES = 20;
export const MAX_HISTORY = 10;
export const MAX_PENDING = 20;
/** The other pipes of a larger service are judged by their rollouts alone. */
export const MAX_CAME_UP = 1000;

const status = z
  .object({
    observedGeneration: z.int().optional().meta({ description: "The generation that this status is about." }),
    conditions: z
      .array(condition)
      .optional()
      .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] }),
    desired: sizeFields
      .extend({ source: sizeSource })
      .optional()
      .meta({ description: "The size that the pipes are to have, and what decided it." }),
    effective: sizeFields
      .optional()
      .meta({ description: "The last size that every pipe had at once, by a completed rollout." }),
    pipes: z
      .object({
        total: z.int().meta({ description: "Database pipes of the service." }),
        updated: z.int().meta({ description: "Those that run the desired size by a completed rollout." }),
        summary: z.string().meta({ description: "Updated of total, such as `2/5`." }),
        pending: z
          .array(pendingPipe)
          .max(MAX_PENDING)
          .optional()
          .meta({
            description: `Pipes that do not run the desired size yet, ${MAX_PENDING} at most, and why.`,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
          }),
        cameUp: z
          .record(z.string(), z.string())
          .optional()
          .meta({
            maxProperties: MAX_CAME_UP,
            description: `The size with which each pipe last came up, ${MAX_CAME_UP} pipes at most, whatever becomes of its pods later: the UID of the Deployment, its generation at that rollout, and the size.`,
          }),
      })
      .optional(),
    replicas: z.int().optional().meta({ description: "Replicas of all pipes together." }),
    computeUnits: z
      .number()
      .optional()
      .meta({ description: "Units of billing at the desired size: 2 cores with 8 GiB are one." }),
    tier: z.string().optional().meta({ description: "Tier of the organization." }),
    propagation: z
      .object({
        requestId: z.string().optional().meta({ description: "Request that asked for the desired size." }),
        startedAt: dateTime,
        completedAt: dateTime.optional(),
      })
      .optional()
      .meta({ description: "The last change of size on its way to the pipes." }),
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
        service: z.int().meta({ description: "Most rollouts at once in this service." }),
        overall: z.int().meta({ description: "Most rollouts at once in all services." }),
        rolloutTimeoutSeconds: z
          .int()
          .meta({ description: "A rollout that takes longer has failed, in seconds." }),
      })
      .optional()
      .meta({ description: "The limits that rollouts keep." }),
    failures: z
      .array(failure)
      .max(MAX_FAILURES)
      .optional()
      .meta({ description: `Pipes in the way of the desired size, ${MAX_FAILURES} at most.` }),
  })
  // Without it kstatus would call a resource that no controller has seen yet ready.
  .meta({ default: { observedGeneration: -1 } });

export const pipeScalingSchema = z.object({ spec: spec.optional(), status: status.optional() }).meta({
  description:
    "PipeScaling is the size of all database pipes of one service. Its name is the id of the service, and it is in the namespace where the service's pipes run.",
});

export type PipeScalingSpec = z.infer<typeof spec>;
export type PipeScalingStatus = z.infer<typeof status>;
export type Condition = z.infer<typeof condition>;
export type PipeFailure = z.infer<typeof failure>;
export type HistoryEntry = z.infer<typeof historyEntry>;
export type PendingPipe = z.infer<typeof pendingPipe>;

/** A PipeScaling without its metadata. */
export interface PipeScaling {
  readonly spec?: PipeScalingSpec;
  readonly status?: PipeScalingStatus;
}
