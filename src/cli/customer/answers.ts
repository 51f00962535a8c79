import * as z from "zod";
import { service } from "../../api/resources/services/schema.ts";
import type { Size } from "../../domain/size.ts";

/**
 * What the API answers, as far as this program relies on it. What a later version adds is let through, and
 * shown to programs as it came.
 */

export const organizations = z.array(
  z.looseObject({ id: z.string(), name: z.string(), createdAt: z.string() }),
);

export const services = z.array(service.loose());

export const apiKeys = z.array(
  z.looseObject({
    id: z.string(),
    name: z.string(),
    keySuffix: z.string(),
    state: z.string(),
    roles: z.array(z.string()),
    createdAt: z.string(),
    expireAt: z.string().optional(),
    usedAt: z.string().optional(),
    ipAccessList: z.array(z.looseObject({ source: z.string() })),
  }),
);

export const backup = z.looseObject({
  backupPeriodInHours: z.number(),
  backupRetentionPeriodInHours: z.number(),
  backupStartTime: z.string().optional(),
});

/** Of an operation that has no result. */
export const nothing = z.undefined().optional();

const sizeFields = z.looseObject({ replicaCpuMillicores: z.number(), replicaMemoryGb: z.number() });

export const size = sizeFields;
export type SizeAnswer = z.infer<typeof sizeFields>;

export function toSize({ replicaCpuMillicores, replicaMemoryGb }: SizeAnswer): Size {
  return { cpuMillicores: replicaCpuMillicores, memoryGib: replicaMemoryGb };
}

export const progress = z.looseObject({
  state: z.string(),
  reason: z.string(),
  message: z.string(),
  desired: sizeFields.extend({ source: z.string() }).optional(),
  effective: sizeFields.optional(),
  pipes: z.looseObject({ total: z.number(), updated: z.number() }).optional(),
  failures: z.array(
    z.looseObject({ pipe: z.string(), reason: z.string(), message: z.string(), attempts: z.number() }),
  ),
  requestId: z.string().optional(),
  startedAt: z.string().optional(),
  completedAt: z.string().optional(),
});

export type ProgressAnswer = z.infer<typeof progress>;
