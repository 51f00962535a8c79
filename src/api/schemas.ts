import * as z from "zod";
import {
  BACKUP_PERIODS_HOURS,
  BACKUP_RETENTION_MAXIMUM_HOURS,
  BACKUP_RETENTION_MINIMUM_HOURS,
  BACKUP_RETENTION_STEP_HOURS,
  BACKUP_START_TIME,
  type BackupChange,
  type BackupPolicy,
  START_TIME_RULE,
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
 * The objects on the wire (api-contract, part 1). What validates also gives the types, and with its `meta`
 * the OpenAPI document. Each message follows the name of its field: `replicaMemoryGb must be …`.
 */

/** A UUID of any version. */
const id = z.guid();

/** Always in UTC. That it is one of the calendar's is said by the format; the pattern of it is for nobody to read. */
export const instant = z.iso.datetime().meta({ override: { pattern: "Z$" } });

const ID_EXAMPLE = "6f1c2a54-9d0b-4c53-8a42-0f8f6b1d2c11";
const CREATED_EXAMPLE = "2026-01-31T12:00:00.000Z";

const CPU_RULE = `must be an integer from ${CPU_MINIMUM_MILLICORES} to ${CPU_MAXIMUM_MILLICORES}, a multiple of ${CPU_STEP_MILLICORES}`;
const MEMORY_RULE = `must be a number from ${MEMORY_MINIMUM_GIB} to ${MEMORY_MAXIMUM_GIB}, a multiple of ${MEMORY_STEP_GIB}`;

// zod forgives a multiple of something a rounding error; what is written to the cluster must be exact.
const sizeFields = {
  replicaCpuMillicores: z
    .int(CPU_RULE)
    .min(CPU_MINIMUM_MILLICORES, CPU_RULE)
    .max(CPU_MAXIMUM_MILLICORES, CPU_RULE)
    .multipleOf(CPU_STEP_MILLICORES, CPU_RULE)
    .meta({ description: "CPU of one replica, in thousandths of a core.", examples: [4000] }),
  replicaMemoryGb: z
    .number(MEMORY_RULE)
    .min(MEMORY_MINIMUM_GIB, MEMORY_RULE)
    .max(MEMORY_MAXIMUM_GIB, MEMORY_RULE)
    .multipleOf(MEMORY_STEP_GIB, MEMORY_RULE)
    .refine(Number.isInteger, MEMORY_RULE)
    .meta({
      description: `Memory of one replica, in GiB: exactly ${GIB_PER_CORE} times the number of cores.`,
      examples: [memoryGibFor(4000)],
    }),
};

export const pipeScaling = z.strictObject(sizeFields).meta({
  id: "PipeScaling",
  description: `The size of one replica of each pipe of a service. Two cores with ${2 * GIB_PER_CORE} GiB are one compute unit.`,
});

export type PipeScalingObject = z.infer<typeof pipeScaling>;

export function toPipeScaling(size: Size): PipeScalingObject {
  return { replicaCpuMillicores: size.cpuMillicores, replicaMemoryGb: size.memoryGib };
}

/** What JSON Schema can say of the body of a PATCH. */
const pipeScalingFields = pipeScaling.partial().meta({
  id: "PipeScalingPatch",
  description: `One of the fields, from which the other follows, or both, and then replicaMemoryGb must be exactly ${GIB_PER_CORE} × replicaCpuMillicores / 1000.`,
  minProperties: 1,
});

/** The body of a PATCH: one field derives the other, both must agree (api-contract, part 2). */
export const pipeScalingPatch = pipeScalingFields.transform((body, context): Size => {
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

export const organization = z
  .strictObject({
    id,
    name: z.string(),
    createdAt: instant,
    byocConfig: z
      .array(z.strictObject({ accountName: z.string(), id: z.string() }))
      .meta({ description: "Accounts of the organization's own that its services run in." }),
    privateEndpoints: z
      .array(z.strictObject({ description: z.string(), id: z.string() }))
      .meta({ description: "Private network endpoints by which its services can be reached." }),
  })
  .meta({
    id: "Organization",
    examples: [
      {
        id: ID_EXAMPLE,
        name: "Acme",
        createdAt: CREATED_EXAMPLE,
        byocConfig: [{ accountName: "main", id: "123456789012" }],
        privateEndpoints: [{ description: "to the office", id: "vpce-0a1b2c3d" }],
      },
    ],
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

export const apiKey = z
  .strictObject({
    id: id.meta({ description: "Of the key as a resource; it is not the key id that one signs in with." }),
    name: z.string(),
    state: z.enum(["enabled", "disabled"]),
    roles: z.array(z.string()).meta({
      description: "`admin` may do everything, `developer` may read, any other role nothing.",
    }),
    createdAt: instant,
    expireAt: instant.optional().meta({ description: "From then on it is refused. Absent: never." }),
    usedAt: instant.optional().meta({ description: "Last use, to the minute. Absent: never used." }),
    keySuffix: z.string().meta({ description: "The last characters of the key id." }),
    ipAccessList: z.array(z.strictObject({ description: z.string(), source: z.string() })).meta({
      description: "Addresses and CIDRs that the key may be used from. Empty: from anywhere.",
    }),
  })
  .meta({
    id: "ApiKey",
    description: "An API key. Its secret is never told.",
    examples: [
      {
        id: ID_EXAMPLE,
        name: "deployments",
        state: "enabled",
        roles: ["admin"],
        createdAt: CREATED_EXAMPLE,
        keySuffix: "x7Qd",
        ipAccessList: [{ description: "the office", source: "203.0.113.0/24" }],
      },
    ],
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

const backupFields = {
  backupPeriodInHours: z
    .literal(BACKUP_PERIODS_HOURS, PERIOD_RULE)
    .meta({ description: "From one backup to the next.", examples: [24] }),
  backupRetentionPeriodInHours: z
    .number(RETENTION_RULE)
    .min(BACKUP_RETENTION_MINIMUM_HOURS, RETENTION_RULE)
    .max(BACKUP_RETENTION_MAXIMUM_HOURS, RETENTION_RULE)
    .multipleOf(BACKUP_RETENTION_STEP_HOURS, RETENTION_RULE)
    .refine(Number.isInteger, RETENTION_RULE)
    .meta({ description: "How long a backup is kept.", examples: [72] }),
  backupStartTime: z
    .string(START_RULE)
    .regex(BACKUP_START_TIME, START_RULE)
    .meta({
      description: `A full hour in UTC, \`H:00\` or \`HH:00\`. ${START_TIME_RULE}.`,
      examples: ["2:00"],
    }),
};

export const backupConfiguration = z
  .strictObject({ ...backupFields, backupStartTime: backupFields.backupStartTime.optional() })
  .meta({ id: "BackupConfiguration" });

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

/** The body of a PATCH: what is absent is kept, `null` goes back to the default. */
export const backupConfigurationPatch = z
  .strictObject({
    backupPeriodInHours: backupFields.backupPeriodInHours.nullish(),
    backupRetentionPeriodInHours: backupFields.backupRetentionPeriodInHours.nullish(),
    backupStartTime: backupFields.backupStartTime.nullish(),
  })
  .refine((body) => Object.keys(body).length > 0, {
    error: "must have backupPeriodInHours, backupRetentionPeriodInHours, backupStartTime or several of them",
  })
  .meta({
    id: "BackupConfigurationPatch",
    description:
      "What is absent is kept, `null` goes back to the default. A backupStartTime without a backupPeriodInHours brings the period back to its default, which it goes with.",
    minProperties: 1,
  })
  .transform(
    (body): BackupChange => ({
      periodInHours: body.backupPeriodInHours,
      retentionPeriodInHours: body.backupRetentionPeriodInHours,
      startTime: body.backupStartTime,
    }),
  );

export const errorEnvelope = z.strictObject({ error: z.string(), status: z.int().min(400).max(599) }).meta({
  id: "Error",
  description: "What a request is answered that was not done. `error` is a sentence for people.",
});

/** Of an operation that has no result. */
export const emptyEnvelope = z.strictObject({ requestId: z.uuidv4(), status: z.literal(200) });

export function successEnvelope<T extends z.ZodType>(result: T) {
  return emptyEnvelope.extend({ result });
}
