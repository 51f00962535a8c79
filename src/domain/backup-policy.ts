/**
 * When a service is backed up, and for how long that is kept. Hours are whole; the start time is `H:00` or
 * `HH:00` in UTC, kept as it was given (api-contract, part 2).
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

/** With any other period each day's backups begin at other hours, so a start time would mean nothing. */
const PERIODS_WITH_START_TIME: readonly number[] = [24, 48];

export const DEFAULT_BACKUP_POLICY = {
  periodInHours: 24,
  retentionPeriodInHours: 24,
  startTime: undefined,
} as const satisfies BackupPolicy;

/** What is absent is kept, `null` goes back to the default. */
export interface BackupChange {
  readonly periodInHours?: number | null | undefined;
  readonly retentionPeriodInHours?: number | null | undefined;
  readonly startTime?: string | null | undefined;
}

/** The policy after a change of values that are allowed by themselves. It may break {@link startTimeFits}. */
export function changeBackupPolicy(current: BackupPolicy, change: BackupChange): BackupPolicy {
  // A start time alone brings the period back to the default, which goes with it.
  const isStartTimeAlone = typeof change.startTime === "string" && change.periodInHours === undefined;
  return {
    periodInHours: changed(
      isStartTimeAlone ? null : change.periodInHours,
      current.periodInHours,
      DEFAULT_BACKUP_POLICY.periodInHours,
    ),
    retentionPeriodInHours: changed(
      change.retentionPeriodInHours,
      current.retentionPeriodInHours,
      DEFAULT_BACKUP_POLICY.retentionPeriodInHours,
    ),
    startTime: changed(change.startTime, current.startTime, DEFAULT_BACKUP_POLICY.startTime),
  };
}

function changed<T>(sent: T | null | undefined, current: T, standard: T): T {
  if (sent === undefined) return current;
  return sent === null ? standard : sent;
}

export function startTimeFits({ startTime, periodInHours }: BackupPolicy): boolean {
  return startTime === undefined || PERIODS_WITH_START_TIME.includes(periodInHours);
}

/** The rule that {@link startTimeFits} checks, for people. */
export const START_TIME_RULE = `backupStartTime goes only with a backupPeriodInHours of ${PERIODS_WITH_START_TIME.join(" or ")}`;
