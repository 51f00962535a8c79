import * as z from "zod";
import {
  BACKUP_PERIODS_HOURS,
  BACKUP_PERIODS_WITH_START_TIME_HOURS,
  BACKUP_RETENTION_MAXIMUM_HOURS,
  BACKUP_RETENTION_MINIMUM_HOURS,
  BACKUP_RETENTION_STEP_HOURS,
  BACKUP_RULES,
  BACKUP_RULES_TEXT,
  BACKUP_START_TIME,
  type BackupChange,
  type BackupPolicy,
  changeBackupPolicy,
  DEFAULT_BACKUP_POLICY,
  RETENTION_ALONE_RULE,
  START_TIME_ALONE_RULE,
} from "../../../domain/backup-policy.ts";

const PERIOD_RULE = `must be one of ${BACKUP_PERIODS_HOURS.join(", ")}`;
const RETENTION_RULE = `must be a number from ${BACKUP_RETENTION_MINIMUM_HOURS} to ${BACKUP_RETENTION_MAXIMUM_HOURS}, a multiple of ${BACKUP_RETENTION_STEP_HOURS}`;
const LONG_PERIODS_HOURS = BACKUP_PERIODS_HOURS.filter((hours) => hours > BACKUP_RETENTION_MINIMUM_HOURS);
const START_RULE = "must be a full hour in UTC, H:00 or HH:00";

const backupFields = {
  backupPeriodInHours: z
    .literal(BACKUP_PERIODS_HOURS, PERIOD_RULE)
    .meta({ description: "Time from one backup to the next, in hours.", examples: [24] }),
  backupRetentionPeriodInHours: z
    .number(RETENTION_RULE)
    .min(BACKUP_RETENTION_MINIMUM_HOURS, RETENTION_RULE)
    .max(BACKUP_RETENTION_MAXIMUM_HOURS, RETENTION_RULE)
    .multipleOf(BACKUP_RETENTION_STEP_HOURS, RETENTION_RULE)
    .refine(Number.isInteger, RETENTION_RULE)
    .meta({ description: "Time for which a backup is kept, in hours.", examples: [72] }),
  backupStartTime: z
    .string(START_RULE)
    .regex(BACKUP_START_TIME, START_RULE)
    .meta({
      description: `A full hour in UTC, \`H:00\` or \`HH:00\`. ${BACKUP_RULES_TEXT}.`,
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

/** JSON Schema of the rule about the start time. An absent or null period becomes one that allows a start time. */
const startTimeRule = {
  if: {
    type: "object",
    description: "A start time is sent.",
    required: ["backupStartTime"],
    properties: { backupStartTime: { type: "string" } },
  },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  then: {
    type: "object",
    description: "The period is absent, null or one that allows a start time.",
    properties: {
      backupPeriodInHours: { enum: [...BACKUP_PERIODS_WITH_START_TIME_HOURS, null] },
      // Linters check this alternative as if it were the whole schema, so it names every field.
      backupRetentionPeriodInHours: {},
      backupStartTime: {},
    },
  },
};

/** JSON Schema of the rule about the retention. An absent or null retention that is too short is raised. */
const retentionRule = {
  if: {
    type: "object",
    description: "The request has a retention, and a period that is longer than the shortest retention.",
    required: ["backupPeriodInHours", "backupRetentionPeriodInHours"],
    properties: {
      backupPeriodInHours: { enum: LONG_PERIODS_HOURS },
      backupRetentionPeriodInHours: { type: "number" },
    },
  },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
  then: {
    type: "object",
    description: "The retention is not shorter than the period.",
    anyOf: LONG_PERIODS_HOURS.map((hours) => ({
      properties: {
        backupPeriodInHours: { const: hours },
        backupRetentionPeriodInHours: { type: "number", minimum: hours },
      },
    })),
  },
};

/** The stored policy that a change contradicts least: a body is invalid if it contradicts even this one. */
const MOST_TOLERANT_POLICY = {
  ...DEFAULT_BACKUP_POLICY,
  retentionPeriodInHours: BACKUP_RETENTION_MAXIMUM_HOURS,
};

/** The body of a PATCH. An absent field keeps its value if the others allow it, and `null` resets it to the default. */
export const backupConfigurationPatch = z
  .strictObject({
    backupPeriodInHours: backupFields.backupPeriodInHours.nullish(),
    backupRetentionPeriodInHours: backupFields.backupRetentionPeriodInHours.nullish(),
    backupStartTime: backupFields.backupStartTime.nullish(),
  })
  .refine((body) => Object.keys(body).length > 0, {
    error: "must have backupPeriodInHours, backupRetentionPeriodInHours, backupStartTime or several of them",
  })
  .superRefine((body, context) => {
    const changed = changeBackupPolicy(MOST_TOLERANT_POLICY, toChange(body));
    for (const { field, condition, isMet } of BACKUP_RULES) {
      if (!isMet(changed)) context.addIssue({ code: "custom", message: condition, path: [field] });
    }
  })
  .meta({
    id: "BackupConfigurationPatch",
    description: `An absent field keeps its value, \`null\` resets it to its default. ${BACKUP_RULES_TEXT}; this holds for the values that are sent and those that are stored. ${START_TIME_ALONE_RULE}. ${RETENTION_ALONE_RULE}.`,
    minProperties: 1,
    allOf: [startTimeRule, retentionRule],
  })
  .transform(toChange);

function toChange(body: Nullish<BackupConfigurationObject>): BackupChange {
  return {
    periodInHours: body.backupPeriodInHours,
    retentionPeriodInHours: body.backupRetentionPeriodInHours,
    startTime: body.backupStartTime,
  };
}

type Nullish<T> = { readonly [Key in keyof T]?: T[Key] | null | undefined };
