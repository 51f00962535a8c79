import * as z from "zod";
import {
  BACKUP_PERIODS_HOURS,
  BACKUP_PERIODS_WITH_START_TIME_HOURS,
  BACKUP_RETENTION_MAXIMUM_HOURS,
  BACKUP_RETENTION_MINIMUM_HOURS,
  BACKUP_RETENTION_STEP_HOURS,
  BACKUP_RULES,
  BACKUP_START_TIME,
  type BackupPolicy,
  DEFAULT_BACKUP_POLICY,
  shortestRetention,
} from "../domain/backup-policy.ts";
import { recordLabels } from "./labels.ts";
import { nameProblem } from "./organization.ts";
import { type Parsed, parseRecord } from "./parse.ts";

const PREFIX = "backup-";

export function backupConfigMapName(serviceId: string): string {
  return `${PREFIX}${serviceId}`;
}

const hours = z
  .string()
  .regex(/^[0-9]{1,4}$/, "must be a whole number of hours")
  .transform(Number);

/** The keys of the ConfigMap. */
export const backupConfigMapData = z.object({
  backupPeriodInHours: hours
    .pipe(z.literal(BACKUP_PERIODS_HOURS, `must be one of ${BACKUP_PERIODS_HOURS.join(", ")}`))
    .default(DEFAULT_BACKUP_POLICY.periodInHours)
    .meta({
      description: `Hours between backups: ${BACKUP_PERIODS_HOURS.join(", ")}. Default: ${DEFAULT_BACKUP_POLICY.periodInHours}.`,
    }),
  backupRetentionPeriodInHours: hours
    .pipe(
      z
        .int()
        .min(BACKUP_RETENTION_MINIMUM_HOURS)
        .max(BACKUP_RETENTION_MAXIMUM_HOURS)
        .multipleOf(BACKUP_RETENTION_STEP_HOURS),
    )
    .default(DEFAULT_BACKUP_POLICY.retentionPeriodInHours)
    .meta({
      description: `Hours for which a backup is kept: ${BACKUP_RETENTION_MINIMUM_HOURS} to ${BACKUP_RETENTION_MAXIMUM_HOURS} in steps of ${BACKUP_RETENTION_STEP_HOURS}. Default: ${DEFAULT_BACKUP_POLICY.retentionPeriodInHours}. A retention that is shorter than the period, which only people and earlier versions write, counts as the period, rounded up to a multiple of ${BACKUP_RETENTION_STEP_HOURS}.`,
    }),
  backupStartTime: z
    .string()
    .regex(BACKUP_START_TIME, "must be H:00 or HH:00, in UTC")
    .optional()
    .meta({
      description: `Hour of the backup in UTC, as \`H:00\` or \`HH:00\`. Without it, no hour is fixed. It is allowed only with a period of ${BACKUP_PERIODS_WITH_START_TIME_HOURS.join(" or ")}.`,
    }),
});

const data = backupConfigMapData
  .transform(
    (values): BackupPolicy => ({
      periodInHours: values.backupPeriodInHours,
      // An earlier version accepted a shorter retention.
      retentionPeriodInHours: Math.max(
        values.backupRetentionPeriodInHours,
        shortestRetention(values.backupPeriodInHours),
      ),
      startTime: values.backupStartTime,
    }),
  )
  .superRefine((policy, context) => {
    for (const { field, condition, isMet } of BACKUP_RULES) {
      if (!isMet(policy)) context.addIssue({ code: "custom", message: `${field} ${condition}` });
    }
  });

/** ConfigMap `backup-<serviceId>` with the values that differ from the defaults. The service has its own record. */
export function parseBackup(
  objectName: string,
  values: Readonly<Record<string, string>> | undefined,
): Parsed<BackupPolicy> {
  return nameProblem(objectName, PREFIX) ?? parseRecord(data, values);
}

/** Returns every possible key of the record with its value; `null` for a default, which is not stored. */
export function backupData(policy: BackupPolicy): Readonly<Record<string, string | null>> {
  const { periodInHours, retentionPeriodInHours, startTime } = policy;
  return {
    backupPeriodInHours: unlessDefault(periodInHours, DEFAULT_BACKUP_POLICY.periodInHours),
    backupRetentionPeriodInHours: unlessDefault(
      retentionPeriodInHours,
      DEFAULT_BACKUP_POLICY.retentionPeriodInHours,
    ),
    backupStartTime: startTime ?? null,
  };
}

function unlessDefault(value: number, standard: number): string | null {
  return value === standard ? null : String(value);
}

export function backupConfigMap(serviceId: string, organizationId: string, policy: BackupPolicy) {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: backupConfigMapName(serviceId), labels: recordLabels("backup", organizationId) },
    data: Object.fromEntries(
      Object.entries(backupData(policy)).flatMap(([key, value]): [string, string][] =>
        value === null ? [] : [[key, value]],
      ),
    ),
  };
}
