import * as z from "zod";
import type { Size } from "../../domain/size.ts";

/** The fields of responses that this program uses. Fields that a later version adds are passed on to programs. */

export const organizations = z.array(z.looseObject({ id: z.string(), name: z.string() }));
export const services = z.array(z.looseObject({ id: z.string(), name: z.string() }));
export const apiKeys = z.array(
  z.looseObject({ name: z.string(), ipAccessList: z.array(z.looseObject({ source: z.string() })) }),
);
export const backup = z.looseObject({ backupPeriodInHours: z.number() });
export const nothing = z.undefined().optional();

export const sizeFields = z.looseObject({ replicaCpuMillicores: z.number(), replicaMemoryGb: z.number() });

export function toSize({ replicaCpuMillicores, replicaMemoryGb }: z.infer<typeof sizeFields>): Size {
  return { cpuMillicores: replicaCpuMillicores, memoryGib: replicaMemoryGb };
}

export const progress = z.looseObject({
  state: z.string(),
  reason: z.string(),
  message: z.string(),
  desired: sizeFields.extend({ source: z.string() }).optional(),
  effective: sizeFields.optional(),
  pipes: z.looseObject({ total: z.number(), updated: z.number(), inPlace: z.number().optional() }).optional(),
  failures: z.array(z.looseObject({ pipe: z.string(), reason: z.string(), message: z.string() })),
  fallbacks: z.array(z.looseObject({ pipe: z.string(), reason: z.string(), message: z.string() })).optional(),
  requestId: z.string().optional(),
  startedAt: z.string().optional(),
  completedAt: z.string().optional(),
});

export type Progress = z.infer<typeof progress>;
