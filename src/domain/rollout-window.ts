import { Cron } from "croner";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The resizes that a closed window holds back. */
export const WINDOW_SCOPES = ["restarts", "all"] as const;
export type WindowScope = (typeof WINDOW_SCOPES)[number];

/** A span of time that recurs. */
interface Recurrence {
  /** The times at which it opens: a cron expression of five fields. */
  readonly schedule: string;
  /** Elapsed time from opening to closing; daylight saving does not change it. */
  readonly durationMs: number;
  /** IANA name of the time zone of the schedule. */
  readonly timeZone: string;
}

/** The times at which pipes may be resized. */
export interface RolloutWindow extends Recurrence {
  readonly appliesTo: WindowScope;
}

/** A shorter window could close before one rollout completes. */
export const LEAST_WINDOW_MS = 15 * MINUTE_MS;
export const MOST_WINDOW_MS = 7 * 24 * HOUR_MS;

export type RolloutWindowState =
  /** If the schedule opens the window again before `untilMs`, it stays open for longer. */
  { readonly open: true; readonly untilMs: number } | { readonly open: false; readonly opensAtMs: number };

/** The state if there is no window, or if somebody opened it early. */
export const ALWAYS_OPEN = { open: true, untilMs: Number.POSITIVE_INFINITY } as const;

/**
 * Returns the state of a window at a given time.
 *
 * If daylight saving skips the time of an opening, the window opens right after the gap; if the time occurs
 * twice, it opens at the first. Schedules with a `*` or a step in the minute or hour have no opening in the gap
 * and one at both occurrences, as in cron.
 *
 * @param window with a schedule that fires and a time zone that exists
 */
export function windowAt(window: Recurrence, nowMs: number): RolloutWindowState {
  const cron = parseCron(window.schedule, window.timeZone);
  // `previousRuns` excludes the given time, so the next millisecond includes an opening right now.
  const [openedAt] = cron.previousRuns(1, new Date(nowMs + 1));
  const untilMs = openedAt ? openedAt.getTime() + window.durationMs : Number.NEGATIVE_INFINITY;
  if (untilMs > nowMs) return { open: true, untilMs };
  const opensAt = cron.nextRun(new Date(nowMs));
  if (!opensAt) throw new RangeError(`The schedule ${JSON.stringify(window.schedule)} never fires.`);
  return { open: false, opensAtMs: opensAt.getTime() };
}

/**
 * Returns the state of a rollout window. It is open if there is no window, or if somebody opened it early.
 *
 * @param openedUntilMs end of the early opening, in milliseconds since 1970
 */
export function rolloutWindowAt(
  window: Recurrence | undefined,
  nowMs: number,
  openedUntilMs = Number.NEGATIVE_INFINITY,
): RolloutWindowState {
  return window && nowMs >= openedUntilMs ? windowAt(window, nowMs) : ALWAYS_OPEN;
}

/** Stricter than the parser of the library, which also accepts dates, @daily and the nonstandard `+`. */
const FIVE_FIELDS = /^\s*[\w*,/#-]+(?:\s+[\w*,/#-]+){4}\s*$/;

/** Returns the problem of a schedule, as in "its schedule must be …"; `undefined` if it is valid. */
export function scheduleProblem(schedule: string): string | undefined {
  if (!FIVE_FIELDS.test(schedule)) return NO_SCHEDULE;
  try {
    return parseCron(schedule, "UTC").nextRun(new Date(0)) ? undefined : "never fires: it matches no date";
  } catch {
    // The errors of the library count days and months from 0, which would be misleading.
    return NO_SCHEDULE;
  }
}

const NO_SCHEDULE =
  'must be a cron expression of five fields (minute, hour, day of month, month, day of week), such as "0 2 * * 6"';

/** True for an IANA time zone name such as `Europe/Berlin`; offsets such as `+02:00` are not names. */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function parseCron(schedule: string, timezone: string): Cron {
  return new Cron(schedule, { timezone, mode: "5-part", fixedTimeRule: "no-wildcard" });
}
