import * as z from "zod";
import type { Value } from "../../settings/values.ts";

/** The fields of responses that this program uses. Fields that a later version adds are passed on to programs. */

export const organizations = z.array(z.looseObject({ id: z.string(), name: z.string() }));
export const services = z.array(z.looseObject({ id: z.string(), name: z.string() }));
export const members = z.array(z.looseObject({ userId: z.string(), role: z.string() }));
export const apiKeys = z.array(
  z.looseObject({ name: z.string(), ipAccessList: z.array(z.looseObject({ source: z.string() })) }),
);
export const backup = z.looseObject({ backupPeriodInHours: z.number() });
export const nothing = z.undefined().optional();

export const sizeFields = z.looseObject({ replicaCpuMillicores: z.number(), replicaMemoryGb: z.number() });

export const boost = sizeFields.extend({ until: z.string() });

export const progress = z.looseObject({
  state: z.string(),
  reason: z.string(),
  message: z.string(),
  desired: sizeFields.extend({ source: z.string() }).optional(),
  boost: sizeFields.extend({ until: z.string(), remainingSeconds: z.number() }).optional(),
  effective: sizeFields.optional(),
  pipes: z.looseObject({ total: z.number(), updated: z.number(), inPlace: z.number().optional() }).optional(),
  failures: z.array(
    z.looseObject({
      pipe: z.string(),
      reason: z.string(),
      message: z.string(),
      nextRetryAt: z.string().optional(),
    }),
  ),
  fallbacks: z.array(z.looseObject({ pipe: z.string(), reason: z.string(), message: z.string() })).optional(),
  requestId: z.string().optional(),
  startedAt: z.string().optional(),
  completedAt: z.string().optional(),
});

export const limits = z.looseObject({
  minimum: sizeFields,
  maximum: sizeFields,
  step: sizeFields,
  default: sizeFields,
  suspended: z.boolean(),
  rolloutWindow: z
    .looseObject({ open: z.boolean(), appliesTo: z.string(), opensAt: z.string().optional() })
    .optional(),
});

export const history = z.array(sizeFields.extend({ startedAt: z.string(), result: z.string() }));

export type Progress = z.infer<typeof progress>;

/** Declares a value of the command line with the schema that the API has for this value in a body. */
export function bodyValue<T>(schema: z.ZodType<T>, read: (text: string) => unknown): Value<T> {
  return z.string().transform((text, context) => {
    const { success, data, error } = schema.safeParse(read(text));
    if (success) return data;
    context.addIssue({ code: "custom", message: `it ${error.issues[0]?.message}` });
    return z.NEVER;
  });
}
