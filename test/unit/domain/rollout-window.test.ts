import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import {
  ALWAYS_OPEN,
  isTimeZone,
  LEAST_WINDOW_MS,
  MOST_WINDOW_MS,
  type RolloutWindow,
  rolloutWindowAt,
  scheduleProblem,
  windowAt,
} from "../../../src/domain/rollout-window.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

function windowOf(schedule: string, hours: number, timeZone = "UTC"): RolloutWindow {
  return { schedule, durationMs: hours * HOUR_MS, timeZone, appliesTo: "restarts" };
}

/** Formats the state with ISO times, for readable failure messages. */
function stateAt(window: RolloutWindow, now: string): string {
  const state = windowAt(window, Date.parse(now));
  const minute = (ms: number) => new Date(ms).toISOString().replace(":00.000Z", "Z");
  return state.open ? `open until ${minute(state.untilMs)}` : `opens at ${minute(state.opensAtMs)}`;
}

const TIME_ZONES = ["UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Asia/Kolkata"];

const timeZones = fc.constantFrom(...TIME_ZONES);
const minutes = fc.integer({ min: 0, max: 59 });
const hours = fc.integer({ min: 0, max: 23 });
const weekdays = fc.integer({ min: 0, max: 6 });
const instants = fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2034, 0) });
const durations = fc
  .integer({ min: LEAST_WINDOW_MS / MINUTE_MS, max: MOST_WINDOW_MS / MINUTE_MS })
  .map((length) => length * MINUTE_MS);
const daily = fc.tuple(minutes, hours).map(([minute, hour]) => `${minute} ${hour} * * *`);
const schedules = fc.oneof(
  daily,
  fc.tuple(minutes, hours, weekdays).map(([minute, hour, day]) => `${minute} ${hour} * * ${day}`),
  fc.tuple(minutes, weekdays).map(([minute, day]) => `${minute} 2 * * ${day}#1`),
  fc.tuple(minutes, hours).map(([minute, hour]) => `${minute} ${hour},23 1,15 * *`),
  fc.constantFrom("*/20 * * * *", "0 1-4 * * MON-FRI", "30 */2 * * *", "0 0 L * *", "15 2 29 2 *"),
);
const windows = fc.record({ schedule: schedules, durationMs: durations, timeZone: timeZones });
const shares = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

/** Returns a time in the half-open interval [`fromMs`, `toMs`). */
function between(fromMs: number, toMs: number, share: number): number {
  return Math.min(toMs - 1, Math.floor(fromMs + (toMs - fromMs) * share));
}

describe("a rollout window", () => {
  const saturdays = windowOf("0 2 * * 6", 4, "Europe/Berlin");

  it("is open from its opening to the last millisecond before it closes", () => {
    expect(stateAt(saturdays, "2026-01-10T00:59:59.999Z")).toBe("opens at 2026-01-10T01:00Z");
    expect(stateAt(saturdays, "2026-01-10T01:00:00Z")).toBe("open until 2026-01-10T05:00Z");
    expect(stateAt(saturdays, "2026-01-10T04:59:59.999Z")).toBe("open until 2026-01-10T05:00Z");
    expect(stateAt(saturdays, "2026-01-10T05:00:00Z")).toBe("opens at 2026-01-17T01:00Z");
  });

  it("follows the clock of its time zone in summer and winter", () => {
    expect(stateAt(saturdays, "2026-07-08T00:00:00Z")).toBe("opens at 2026-07-11T00:00Z");
    expect(stateAt(saturdays, "2026-12-08T00:00:00Z")).toBe("opens at 2026-12-12T01:00Z");
  });

  it.each([
    ["30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00Z"],
    ["30 2,14 * * *", "Europe/Berlin", "2026-03-28T20:00:00Z", "2026-03-29T01:00Z"],
    ["0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "2026-09-06T04:00Z"],
    ["15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-03T15:30Z"],
  ])(
    "opens after the gap if daylight saving time skips its opening: %j in %s",
    (schedule, timeZone, now, opens) => {
      expect(stateAt(windowOf(schedule, 1, timeZone), now)).toBe(`opens at ${opens}`);
    },
  );

  it("opens only at the first occurrence if its opening time occurs twice", () => {
    const window = windowOf("30 2 * * *", 0.5, "Europe/Berlin");
    expect(stateAt(window, "2026-10-24T22:00:00Z")).toBe("opens at 2026-10-25T00:30Z");
    expect(stateAt(window, "2026-10-25T00:45:00Z")).toBe("open until 2026-10-25T01:00Z");
    expect(stateAt(window, "2026-10-25T01:30:00Z")).toBe("opens at 2026-10-26T01:30Z");
  });

  it("lasts for its full duration across a daylight saving change", () => {
    expect(stateAt(windowOf("0 1 * * *", 4, "Europe/Berlin"), "2026-03-29T00:30:00Z")).toBe(
      "open until 2026-03-29T04:00Z",
    );
    expect(stateAt(windowOf("0 1 * * *", 4, "Europe/Berlin"), "2026-10-25T02:30:00Z")).toBe(
      "open until 2026-10-25T03:00Z",
    );
  });

  it.each([
    ["* * * * *", 0.25],
    ["0 * * * *", 1],
    ["0 3 * * *", 25],
    ["0 3 * * 1,4", 7 * 24],
  ])("is always open if it opens again before it closes: %j for %s hours", (schedule, length) => {
    fc.assert(
      fc.property(instants, timeZones, (nowMs, timeZone) => {
        expect(windowAt(windowOf(schedule, length, timeZone), nowMs)).toMatchObject({ open: true });
      }),
    );
  });

  it("opens at the times that modulo arithmetic predicts for weekly and daily schedules in UTC", () => {
    fc.assert(
      fc.property(
        instants,
        minutes,
        hours,
        fc.option(weekdays, { nil: undefined }),
        durations,
        (nowMs, minute, hour, day, durationMs) => {
          const periodMs = day === undefined ? DAY_MS : 7 * DAY_MS;
          // The Unix epoch was a Thursday.
          const firstMs = ((day ?? 4) - 4) * DAY_MS + hour * HOUR_MS + minute * MINUTE_MS;
          const sinceOpeningMs = (nowMs - firstMs) % periodMs;
          const schedule = `${minute} ${hour} * * ${day ?? "*"}`;
          expect(windowAt({ schedule, durationMs, timeZone: "UTC" }, nowMs)).toEqual(
            sinceOpeningMs < durationMs
              ? { open: true, untilMs: nowMs - sinceOpeningMs + durationMs }
              : { open: false, opensAtMs: nowMs - sinceOpeningMs + periodMs },
          );
        },
      ),
    );
  });

  it("opens at the reported time and not before, if it is closed", () => {
    fc.assert(
      fc.property(windows, instants, shares, (window, nowMs, share) => {
        const state = windowAt(window, nowMs);
        fc.pre(!state.open);
        const { opensAtMs } = state;
        expect(opensAtMs).toBeGreaterThan(nowMs);
        expect(windowAt(window, opensAtMs)).toEqual({
          open: true,
          untilMs: opensAtMs + window.durationMs,
        });
        expect(windowAt(window, between(nowMs, opensAtMs, share))).toEqual(state);
        expect(windowAt(window, opensAtMs - 1)).toEqual(state);
      }),
    );
  });

  it("stays open until the reported time if it is open", () => {
    fc.assert(
      fc.property(windows, instants, shares, (window, nowMs, share) => {
        const state = windowAt(window, nowMs);
        fc.pre(state.open);
        const { untilMs } = state;
        expect(untilMs).toBeGreaterThan(nowMs);
        expect(untilMs).toBeLessThanOrEqual(nowMs + window.durationMs);
        expect(windowAt(window, between(nowMs, untilMs, share)).open).toBe(true);
        expect(windowAt(window, untilMs - 1).open).toBe(true);
      }),
    );
  });

  it("closes at the reported time if it is shorter than the time between two openings", () => {
    const short = durations.filter((durationMs) => durationMs < 22 * HOUR_MS);
    fc.assert(
      fc.property(daily, short, timeZones, instants, (schedule, durationMs, timeZone, nowMs) => {
        const window = { schedule, durationMs, timeZone };
        const state = windowAt(window, nowMs);
        fc.pre(state.open);
        expect(windowAt(window, state.untilMs).open).toBe(false);
      }),
    );
  });

  it("does not depend on the time zone of the machine", () => {
    const examples = fc.sample(fc.tuple(windows, instants), 50);
    const states = () => examples.map(([window, nowMs]) => windowAt(window, nowMs));
    const [first, ...others] = ["UTC", "America/Santiago", "Pacific/Kiritimati"].map((timeZone) => {
      vi.stubEnv("TZ", timeZone);
      expect(new Intl.DateTimeFormat().resolvedOptions().timeZone).toBe(timeZone);
      return states();
    });
    for (const other of others) expect(other).toEqual(first);
    vi.unstubAllEnvs();
  });
});

describe("the validation of a schedule", () => {
  it.each(["0 2 * * 6", "*/15 22-23,0-4 1,15 JAN-MAR MON-FRI", " 0  2 * * 7 ", "0 2 * * SAT#1", "0 2 L * *"])(
    "accepts %j",
    (schedule) => {
      expect(scheduleProblem(schedule)).toBeUndefined();
    },
  );

  it.each([
    "",
    "@daily",
    "* * * *",
    "0 0 2 * * 6",
    "60 2 * * *",
    "0 24 * * *",
    "0 2 0 * *",
    "0 2 * 13 *",
    "0 2 * * 8",
    "*/0 * * * *",
    "0 2 * * SATURN",
    "0 2 +1 * 6",
    "2026-01-01T02:00:00Z",
    "2026-01-01 02:00 * * *",
  ])("rejects %j with an example of a valid schedule", (schedule) => {
    expect(scheduleProblem(schedule)).toMatch(/^must be a cron expression of five fields .* "0 2 \* \* 6"$/);
  });

  it.each(["0 2 30 2 *", "0 2 31 4,6,9,11 *"])("rejects %j because it never fires", (schedule) => {
    expect(scheduleProblem(schedule)).toMatch(/^never fires/);
  });

  it("accepts a schedule that fires only once in 28 years", () => {
    const window = windowOf("0 2 * 2 6#5", 1);
    expect(scheduleProblem(window.schedule)).toBeUndefined();
    expect(stateAt(window, "2026-01-01T00:00:00Z")).toBe("opens at 2048-02-29T02:00Z");
  });
});

describe("the window of a service", () => {
  const window = windowOf("0 2 * * *", 1);
  const noon = Date.parse("2026-01-31T12:00:00Z");

  it("is always open if there is none", () => {
    expect(rolloutWindowAt(undefined, noon)).toEqual(ALWAYS_OPEN);
  });

  it("follows its schedule, except until the time for which somebody opened it", () => {
    const closed = { open: false, opensAtMs: Date.parse("2026-02-01T02:00:00Z") };
    expect(rolloutWindowAt(window, noon)).toEqual(closed);
    expect(rolloutWindowAt(window, noon, noon + 1)).toEqual(ALWAYS_OPEN);
    expect(rolloutWindowAt(window, noon, noon)).toEqual(closed);
  });
});

describe("the validation of a time zone", () => {
  it.each(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+1"])("accepts %j", (name) => {
    expect(isTimeZone(name)).toBe(true);
  });

  it.each(["", "Mars/Base", "CEST", "+02:00", "-0300", "Europe", " UTC"])("rejects %j", (name) => {
    expect(isTimeZone(name)).toBe(false);
  });
});
