import { stringify } from "yaml";
import * as z from "zod";
import {
  isTimeZone,
  LEAST_WINDOW_MS,
  MOST_WINDOW_MS,
  type RolloutWindow,
  scheduleProblem,
  WINDOW_SCOPES,
} from "../domain/rollout-window.ts";
import { nonEmpty, type Parsed, yamlContents } from "./parse.ts";
import { readYaml } from "./yaml.ts";

/** The format of a window for people, as input and output. */
interface WrittenWindow {
  readonly schedule: string;
  readonly duration: string;
  readonly timeZone: string;
  readonly appliesTo: string;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A schedule is parsed for each decision. One that lists every value of every field has 356 characters. */
const MAX_SCHEDULE_LENGTH = 500;

const schedule = nonEmpty
  .max(MAX_SCHEDULE_LENGTH, {
    error: `must not be longer than ${MAX_SCHEDULE_LENGTH} characters`,
    abort: true,
  })
  .superRefine((text, context) => {
    const problem = scheduleProblem(text);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  });

const duration = nonEmpty.transform((text, context) => {
  const ms = milliseconds(text);
  if (ms !== undefined && ms >= LEAST_WINDOW_MS && ms <= MOST_WINDOW_MS) return ms;
  const bounds = `${formatDuration(LEAST_WINDOW_MS)} to ${formatDuration(MOST_WINDOW_MS)}`;
  context.addIssue({ code: "custom", message: `must be a duration from ${bounds}, such as 90m or 4h` });
  return z.NEVER;
});

const timeZone = nonEmpty.refine(isTimeZone, "must be the IANA name of a time zone, such as Europe/Berlin");

const window = z.strictObject(
  {
    schedule: schedule.meta({
      description:
        "Times at which the window opens: a cron expression of five fields. Put it in quotes, because YAML reads a `*` at its beginning as an alias.",
    }),
    duration: duration.meta({
      description: `Time from opening to closing, in minutes or hours such as \`90m\` or \`4h\`: ${formatDuration(LEAST_WINDOW_MS)} to ${formatDuration(MOST_WINDOW_MS)}.`,
    }),
    timeZone: timeZone
      .default("UTC")
      .meta({ description: "IANA name of the time zone of the schedule. Default: UTC." }),
    appliesTo: z
      .enum(WINDOW_SCOPES, `must be ${WINDOW_SCOPES.join(" or ")}`)
      .default("restarts")
      .meta({
        description:
          "The resizes that wait for the window: `restarts`, or `all`, which includes those in place. Default: `restarts`.",
      }),
  },
  {
    error: (issue) =>
      issue.code === "unrecognized_keys"
        ? `it has the unknown key ${issue.keys.join(", ")}: the valid keys are schedule, duration, timeZone and appliesTo`
        : NO_MAP,
  },
);

/** YAML parses an unquoted value that begins with `*` as an alias, and a schedule can begin with it. */
const NO_MAP =
  'it must be a YAML map such as {schedule: "0 2 * * 6", duration: 4h, timeZone: Europe/Berlin}, with the schedule in quotes';

/** The problem is a clause about the window, as in "it must be …". */
export function parseRolloutWindow(text: string): Parsed<RolloutWindow> {
  const read = readYaml(text, "failsafe");
  if (!read.ok) return { ok: false, problem: NO_MAP };
  const result = window.safeParse(read.value);
  if (!result.success) {
    const problems = result.error.issues.map(({ path: [key], message }) =>
      key === undefined ? message : `its ${String(key)} ${message}`,
    );
    return { ok: false, problem: problems.join("; ") };
  }
  const { duration: durationMs, ...rest } = result.data;
  return { ok: true, value: { ...rest, durationMs } };
}

/** The value of the key `rolloutWindow` of a record. */
export const rolloutWindowValue: z.ZodType<RolloutWindow, string> = z
  .string()
  .transform((text, context) => {
    const parsed = parseRolloutWindow(text);
    if (parsed.ok) return parsed.value;
    context.addIssue({ code: "custom", message: parsed.problem });
    return z.NEVER;
  })
  .register(yamlContents, { content: window });

/** The inverse of {@link rolloutWindowValue}. */
export function formatRolloutWindow(value: RolloutWindow): string {
  const style = {
    collectionStyle: "flow",
    defaultStringType: "QUOTE_DOUBLE",
    defaultKeyType: "PLAIN",
  } as const;
  return stringify(writtenWindow(value), { ...style, lineWidth: 0 }).trimEnd();
}

export function writtenWindow(value: RolloutWindow): WrittenWindow {
  return {
    schedule: value.schedule,
    duration: formatDuration(value.durationMs),
    timeZone: value.timeZone,
    appliesTo: value.appliesTo,
  };
}

function milliseconds(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,5})([mh])$/.exec(text) ?? [];
  return count === undefined ? undefined : Number(count) * (unit === "h" ? HOUR_MS : MINUTE_MS);
}

function formatDuration(ms: number): string {
  return ms % HOUR_MS === 0 ? `${ms / HOUR_MS}h` : `${ms / MINUTE_MS}m`;
}
