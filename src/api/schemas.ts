import * as z from "zod";
import {
  BACKUP_PERIODS_HOURS,
  BACKUP_RETENTION_MAXIMUM_HOURS,
  BACKUP_RETENTION_MINIMUM_HOURS,
  BACKUP_RETENTION_STEP_HOURS,
  BACKUP_START_TIME,
  type BackupChange,
  type BackupPolicy,
} from "../domain/backup-policy.ts";
import {
  CPU_MAXIMUM_MILLICORES,
  CPU_MINIMUM_MILLICORES,
  CPU_STEP_MILLICORES,
  cpuMillicoresFor,
  GIB_PER_CORE,
  MEMORY_MAXIMUM_GIB,
  MEMORY_MINIMUM_GIB,
  MEMORY_STEP_GIB,
  memoryGibFor,
  type Size,
} from "../domain/size.ts";
import type { ApiKey } from "../records/api-key.ts";
import type { Organization } from "../records/organization.ts";

/**
 * The objects on the wire (api-contract, part 1). What validates also gives the types. Each message follows
 * the name of its field: `replicaMemoryGb must be …`.
 */

const CPU_RULE = `must be an integer from ${CPU_MINIMUM_MILLICORES} to ${CPU_MAXIMUM_MILLICORES}, a multiple of ${CPU_STEP_MILLICORES}`;
const MEMORY_RULE = `must be a number from ${MEMORY_MINIMUM_GIB} to ${MEMORY_MAXIMUM_GIB}, a multiple of ${MEMORY_STEP_GIB}`;

const sizeFields = {
  replicaCpuMillicores: z
    .int(CPU_RULE)
    .min(CPU_MINIMUM_MILLICORES, CPU_RULE)
    .max(CPU_MAXIMUM_MILLICORES, CPU_RULE)
    .multipleOf(CPU_STEP_MILLICORES, CPU_RULE),
  replicaMemoryGb: z
    .number(MEMORY_RULE)
    .min(MEMORY_MINIMUM_GIB, MEMORY_RULE)
    .max(MEMORY_MAXIMUM_GIB, MEMORY_RULE)
    .multipleOf(MEMORY_STEP_GIB, MEMORY_RULE),
};

export const pipeScaling = z.strictObject(sizeFields);

export type PipeScalingObject = z.infer<typeof pipeScaling>;

export function toPipeScaling(size: Size): PipeScalingObject {
  return { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
}

/** The body of a PATCH: one field derives the other, both must agree (api-contract, part 2). */
export const pipeScalingPatch = pipeScaling.partial().transform((body, context): Size => {
  const { replicaCpuMillicores, replicaMemoryGb } = body;
  const cpuMillicores = replicaCpuMillicores ?? cpuOf(replicaMemoryGb);
  if (cpuMillicores === undefined) {
    const message = "must have replicaCpuMillicores, replicaMemoryGb or both";
    context.addIssue({ code: "custom", message });
    return z.NEVER;
  }
  const memoryGib = memoryGibFor(cpuMillicores);
  if (replicaMemoryGb !== undefined && replicaMemoryGb !== memoryGib) {
    const message = `must be exactly ${GIB_PER_CORE} times the number of cores: ${memoryGib} for replicaCpuMillicores ${cpuMillicores}`;
    context.addIssue({ code: "custom", path: ["replicaMemoryGb"], message });
    return z.NEVER;
  }
  return { cpuMillicores, memoryGib };
});

function cpuOf(memoryGib: number | undefined): number | undefined {
  return memoryGib === undefined ? undefined : cpuMillicoresFor(memoryGib);
}

export const organization = z.strictObject({
  id: z.guid(),
  name: z.string(),
  createdAt: z.iso.datetime(),
  byocConfig: z.array(z.strictObject({ accountName: z.string(), id: z.string() })),
  privateEndpoints: z.array(z.strictObject({ description: z.string(), id: z.string() })),
});

export type OrganizationObject = z.infer<typeof organization>;

export function toOrganization(record: Organization): OrganizationObject {
  const { id, name, createdAt, byocConfig, privateEndpoints } = record;
  return {
    id,
    name,
    createdAt: createdAt.toISOString(),
    byocConfig: [...byocConfig],
    privateEndpoints: [...privateEndpoints],
  };
}

export const apiKey = z.strictObject({
  id: z.guid(),
  name: z.string(),
  state: z.string(),
  roles: z.array(z.string()),
  createdAt: z.iso.datetime(),
  expireAt: z.iso.datetime().optional(),
  usedAt: z.iso.datetime().optional(),
  keySuffix: z.string(),
  ipAccessList: z.array(z.strictObject({ description: z.string(), source: z.string() })),
});

export type ApiKeyObject = z.infer<typeof apiKey>;

/** Field by field, so that what is added to a record stays inside. */
export function toApiKey(key: ApiKey, usedAt: Date | undefined): ApiKeyObject {
  const { id, name, state, roles, createdAt, expireAt, keySuffix, ipAccessList } = key;
  return {
    id,
    name,
    state,
    roles: [...roles],
    createdAt: createdAt.toISOString(),
    ...(expireAt ? { expireAt: expireAt.toISOString() } : {}),
    ...(usedAt ? { usedAt: usedAt.toISOString() } : {}),
    keySuffix,
    ipAccessList: ipAccessList.map(({ description, source }) => ({ description, source })),
  };
}

const PERIOD_RULE = `must be one of ${BACKUP_PERIODS_HOURS.join(", ")}`;
const RETENTION_RULE = `must be a number from ${BACKUP_RETENTION_MINIMUM_HOURS} to ${BACKUP_RETENTION_MAXIMUM_HOURS}, a multiple of ${BACKUP_RETENTION_STEP_HOURS}`;
const START_RULE = "must be a full hour in UTC, H:00 or HH:00";

export const backupConfiguration = z.strictObject({
  backupPeriodInHours: z.literal(BACKUP_PERIODS_HOURS, PERIOD_RULE),
  backupRetentionPeriodInHours: z
    .number(RETENTION_RULE)
    .min(BACKUP_RETENTION_MINIMUM_HOURS, RETENTION_RULE)
    .max(BACKUP_RETENTION_MAXIMUM_HOURS, RETENTION_RULE)
    .multipleOf(BACKUP_RETENTION_STEP_HOURS, RETENTION_RULE),
  backupStartTime: z.string(START_RULE).regex(BACKUP_START_TIME, START_RULE).optional(),
});

export interface BackupConfigurationObject {
  backupPeriodInHours: number;
  backupRetentionPeriodInHours: number;
  backupStartTime?: string;
}

export function toBackupConfiguration(policy: BackupPolicy): BackupConfigurationObject {
  const { periodInHours, retentionPeriodInHours, startTime } = policy;
  return {
    backupPeriodInHours: periodInHours,
    backupRetentionPeriodInHours: retentionPeriodInHours,
    ...(startTime === undefined ? {} : { backupStartTime: startTime }),
  };
}

const { backupPeriodInHours, backupRetentionPeriodInHours, backupStartTime } = backupConfiguration.shape;

/** The body of a PATCH: what is absent is kept, `null` goes back to the default. */
export const backupConfigurationPatch = z
  .strictObject({
    backupPeriodInHours: backupPeriodInHours.nullish(),
    backupRetentionPeriodInHours: backupRetentionPeriodInHours.nullish(),
    backupStartTime: backupStartTime.nullish(),
  })
  .refine((body) => Object.keys(body).length > 0, {
    error: "must have backupPeriodInHours, backupRetentionPeriodInHours, backupStartTime or several of them",
  })
  .transform(
    (body): BackupChange => ({
      periodInHours: body.backupPeriodInHours,
      retentionPeriodInHours: body.backupRetentionPeriodInHours,
      startTime: body.backupStartTime,
    }),
  );

export const errorEnvelope = z.strictObject({ error: z.string(), status: z.int() });

export function successEnvelope<T extends z.ZodType>(result: T) {
  return z.strictObject({ requestId: z.uuidv4(), status: z.literal(200), result });
}
