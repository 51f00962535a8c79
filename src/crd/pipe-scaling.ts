import * as z from "zod";
import { SIZE_SOURCES } from "../domain/tier.ts";
import { dateTime, MAX_CONDITION_MESSAGE_LENGTH, MAX_NAME_LENGTH, message, name, word } from "./fields.ts";
import { spec } from "./pipe-scaling-spec.ts";

/**
 * The schema of PipeScaling, from which the TypeScript types and (in manifest.ts) the CRD in crds/ are derived.
 * Keys that start with `x-kubernetes-` are copied into the CRD.
 */

/** More conditions than the controller writes, because other tools may add theirs. */
export const MAX_CONDITIONS = 8;
export const MAX_FAILURES = 20;
export const MAX_HISTORY = 10;
export const MAX_PENDING = 20;
export const MAX_FALLBACKS = 20;
export const MAX_METHODS = 1000;

/** The characters in names of pipes, of one byte each. */
const PIPE_NAME = "^[a-z0-9./-]+$";

/** The names of pipes as keys, which only a rule can restrict. */
const keys = {
  "x-kubernetes-validations": [
    {
      rule: `self.all(name, size(name) <= ${MAX_NAME_LENGTH})`,
      message: `a name has at most ${MAX_NAME_LENGTH} characters`,
    },
    {
      rule: `self.all(name, name.matches('${PIPE_NAME}'))`,
      message: "a name has only lowercase letters, digits, '.', '-' and '/'",
    },
  ],
};

const sizeFields = z.object({
  replicaCpuMillicores: z.int().meta({ description: "CPU of each replica, in millicores." }),
  replicaMemoryGb: z.int().meta({ description: "Memory of each replica, in GiB." }),
  summary: word.meta({ description: "The size for people, such as `4 cpu / 16 Gi`." }),
});

const sizeSource = z.enum(SIZE_SOURCES);

/** A Deployment and a StatefulSet can have the same name. */
const pipeName = name.regex(new RegExp(PIPE_NAME)).meta({
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
    description:
      "If a pipe waits because it must not restart: why it cannot be resized in place, as one word.",
  }),
  message: message.optional().meta({ description: "The reason for waiting, or the error." }),
});

const fallback = z.object({
  pipe: pipeName,
  reason: word,
  message,
});

const HISTORY_RESULTS = ["Progressing", "Scaled", "Superseded", "Failed"] as const;

const historyEntry = sizeFields.extend({
  source: sizeSource.meta({ description: "Origin of the size." }),
  boost: z.boolean().optional().meta({
    description:
      "True if only a boost had this size, also if the maximum of the tier limited it. A rollback does not return to it.",
  }),
  result: z.enum(HISTORY_RESULTS).meta({
    description:
      "Scaled: every pipe ran the size, and at least one pipe has replicas. Superseded: another size came first. Failed: a pipe cannot take the size, or the pipes ran out of memory with it; the result can still become Scaled.",
  }),
  requestId: word.optional().meta({ description: "Last API request for the size." }),
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
            description: `How each pipe whose pods and template have the desired size got it, for at most ${MAX_METHODS} pipes: by a resize of its running pods, or by a rollout. Pipes that had the size before, or had no replicas then, are not listed.`,
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
        service: z.int().meta({
          description:
            "Maximum number of pipes of this service that are resized or rolled out at the same time.",
        }),
        overall: z.int().meta({ description: "Maximum number of concurrent rollouts in all services." }),
        rolloutTimeoutSeconds: z.int().meta({
          description:
            "Time within which new pods must become available, in seconds. A Deployment can set a longer one, and a StatefulSet has this time for each pod in turn.",
        }),
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

const WORDS: ReadonlySet<string> = new Set([...SIZE_SOURCES, ...HISTORY_RESULTS]);

/** False for an entry of a later version, which the CRD of this one rejects. */
export function isKnownEntry({ source, result }: HistoryEntry): boolean {
  return WORDS.has(source) && WORDS.has(result);
}

/** A PipeScaling without its metadata. */
export interface PipeScaling {
  readonly spec?: PipeScalingSpec;
  readonly status?: PipeScalingStatus;
}
