/**
 * The schedule of a service's backups and how long each is kept. Hours are whole; the start time is `H:00` or
 * `HH:00` in UTC, stored as sent.
 */
export interface BackupPolicy {
  readonly periodInHours: number;
  readonly retentionPeriodInHours: number;
  readonly startTime: string | undefined;
}

export const BACKUP_PERIODS_HOURS = [6, 8, 12, 16, 20, 24, 36, 48] as const;
export const BACKUP_RETENTION_MINIMUM_HOURS = 24;
export const BACKUP_RETENTION_MAXIMUM_HOURS = 1080;
export const BACKUP_RETENTION_STEP_HOURS = 24;
export const BACKUP_START_TIME = /^(?:[01]?[0-9]|2[0-3]):00$/;

/** With any other period, backups start several times a day, or at other hours on other days. */
export const BACKUP_PERIODS_WITH_START_TIME_HOURS: readonly number[] = [24, 48];

export const DEFAULT_BACKUP_POLICY = {
  periodInHours: 24,
  retentionPeriodInHours: 24,
  startTime: undefined,
} as const satisfies BackupPolicy;

/** An absent field keeps its value, except as in {@link changeBackupPolicy}; `null` resets it to the default. */
export interface BackupChange {
  readonly periodInHours?: number | null | undefined;
  readonly retentionPeriodInHours?: number | null | undefined;
  readonly startTime?: string | null | undefined;
}

/**
 * Returns the policy after a change whose values are valid by themselves. A start time sent without a period resets a
 * stored period that does not allow one. If a period is sent without a retention, or the retention is reset, a
 * retention that is shorter than the period is raised. The result can still break {@link BACKUP_RULES}.
 */
export function changeBackupPolicy(current: BackupPolicy, change: BackupChange): BackupPolicy {
  const isStartTimeAlone = typeof change.startTime === "string" && change.periodInHours === undefined;
  const resetsPeriod = isStartTimeAlone && !allowsStartTime(current.periodInHours);
  const periodInHours = changed(
    resetsPeriod ? null : change.periodInHours,
    current.periodInHours,
    DEFAULT_BACKUP_POLICY.periodInHours,
  );
  const retentionPeriodInHours = changed(
    change.retentionPeriodInHours,
    current.retentionPeriodInHours,
    DEFAULT_BACKUP_POLICY.retentionPeriodInHours,
  );
  const isRetentionAsSent = typeof change.retentionPeriodInHours === "number";
  const isAboutPeriod = typeof change.periodInHours === "number" || change.retentionPeriodInHours === null;
  const isRaised = !isRetentionAsSent && isAboutPeriod;
  return {
    periodInHours,
    retentionPeriodInHours: isRaised
      ? Math.max(retentionPeriodInHours, shortestRetention(periodInHours))
      : retentionPeriodInHours,
    startTime: changed(change.startTime, current.startTime, DEFAULT_BACKUP_POLICY.startTime),
  };
}

function changed<T>(sent: T | null | undefined, current: T, standard: T): T {
  if (sent === undefined) return current;
  return sent === null ? standard : sent;
}

/** The shortest retention with which there is a backup at any time. */
export function shortestRetention(periodInHours: number): number {
  return Math.ceil(periodInHours / BACKUP_RETENTION_STEP_HOURS) * BACKUP_RETENTION_STEP_HOURS;
}

function allowsStartTime(periodInHours: number): boolean {
  return BACKUP_PERIODS_WITH_START_TIME_HOURS.includes(periodInHours);
}

const PERIODS_WITH_START_TIME = BACKUP_PERIODS_WITH_START_TIME_HOURS.join(" or ");

/** A rule about two fields of a policy. */
interface BackupRule {
  readonly field: "backupStartTime" | "backupRetentionPeriodInHours";
  /** For people, as the predicate of a sentence about the field. */
  readonly condition: string;
  readonly remedy: string;
  readonly isMet: (policy: BackupPolicy) => boolean;
}

export const BACKUP_RULES: readonly BackupRule[] = [
  {
    field: "backupStartTime",
    condition: `is allowed only with a backupPeriodInHours of ${PERIODS_WITH_START_TIME}`,
    remedy: "send one of these, or backupStartTime null",
    isMet: ({ startTime, periodInHours }) => startTime === undefined || allowsStartTime(periodInHours),
  },
  {
    // Otherwise, there would be times without any backup.
    field: "backupRetentionPeriodInHours",
    condition: "must not be shorter than backupPeriodInHours",
    remedy: "send a longer retention, a shorter period, or no retention",
    isMet: ({ periodInHours, retentionPeriodInHours }) => retentionPeriodInHours >= periodInHours,
  },
];

/** The rules, for people. */
export const BACKUP_RULES_TEXT = BACKUP_RULES.map(({ field, condition }) => `${field} ${condition}`).join(
  ", and ",
);

/** The effect of {@link changeBackupPolicy} on the retention, for people. */
export const RETENTION_ALONE_RULE =
  "Without a backupRetentionPeriodInHours, a retention that is shorter than the period is raised to it, in steps of 24";

/** The effect of {@link changeBackupPolicy} on the period, for people. */
export const START_TIME_ALONE_RULE = `A backupStartTime without a backupPeriodInHours keeps a stored period of ${PERIODS_WITH_START_TIME} and resets any other to ${DEFAULT_BACKUP_POLICY.periodInHours}`;
