import * as z from "zod";
import {
  BACKUP_PERIODS_HOURS,
  BACKUP_RETENTION_MAXIMUM_HOURS,
  BACKUP_RETENTION_MINIMUM_HOURS,
  BACKUP_RETENTION_STEP_HOURS,
  BACKUP_START_TIME,
  START_TIME_ALONE_RULE,
  START_TIME_RULE,
} from "../../domain/backup-policy.ts";
import { option, UsageError } from "../../settings/option.ts";
import { oneOf, written } from "../../settings/values.ts";
import type { CommandGroup } from "../command.ts";
import { outputOption } from "../common-options.ts";
import { printOne } from "../output.ts";
import { organizationOption, serviceArgument } from "./access.ts";
import { apiCommand, servicePath } from "./command.ts";
import { backup as backupResult } from "./responses.ts";

/** Stands for `null`, which resets a setting to its default. */
const DEFAULT = "default";

const period = oneOf(DEFAULT, ...BACKUP_PERIODS_HOURS.map(String));

const retention = written(
  `it must be ${DEFAULT}, or a number of hours from ${BACKUP_RETENTION_MINIMUM_HOURS} to ${BACKUP_RETENTION_MAXIMUM_HOURS} in steps of ${BACKUP_RETENTION_STEP_HOURS}`,
  (text) => {
    const hours = /^\d{1,4}$/.test(text) ? Number(text) : 0;
    const isInRange = hours >= BACKUP_RETENTION_MINIMUM_HOURS && hours <= BACKUP_RETENTION_MAXIMUM_HOURS;
    const isAllowed = isInRange && hours % BACKUP_RETENTION_STEP_HOURS === 0;
    return isAllowed || text === DEFAULT ? text : undefined;
  },
);

const startTime = written(`it must be ${DEFAULT}, or a full hour in UTC such as 2:00 or 14:00`, (text) =>
  BACKUP_START_TIME.test(text) || text === DEFAULT ? text : undefined,
);

const get = apiCommand({
  name: "get",
  summary: "show the backup settings of a service",
  examples: ["backup get <uuid>"],
  arguments: serviceArgument,
  options: z.object({ ...organizationOption, ...outputOption }),
  async run(api, { output, ...values }, io) {
    const path = `${await servicePath(api, values)}/backupConfiguration`;
    const { result } = await api.request({ method: "GET", path }, backupResult);
    printOne(io, output, result);
  },
});

const changes = z.object({
  period: option(period.optional(), {
    placeholder: "hours",
    description: `hours between backups: ${BACKUP_PERIODS_HOURS.join(", ")}`,
  }),
  retention: option(retention.optional(), {
    placeholder: "hours",
    description: "hours that a backup is kept",
  }),
  startTime: option(startTime.optional(), { placeholder: "time", description: "a full hour in UTC" }),
});

const set = apiCommand({
  name: "set",
  summary: "change the backup settings of a service",
  details: `A setting that is not given keeps its value; the word ${DEFAULT} resets it to its default.\n${START_TIME_RULE}. ${START_TIME_ALONE_RULE}.`,
  examples: [
    "backup set <uuid> --period 12 --retention 72",
    "backup set <uuid> --period 24 --start-time 2:00",
  ],
  arguments: serviceArgument,
  options: z.object({ ...changes.shape, ...organizationOption, ...outputOption }),
  check({ period, retention, startTime }) {
    if (period !== undefined || retention !== undefined || startTime !== undefined) return;
    throw new UsageError("There is nothing to change: give --period, --retention or --start-time.");
  },
  async run(api, { output, period, retention, startTime, ...values }, io) {
    // JSON leaves out a setting that is undefined.
    const body = {
      backupPeriodInHours: orNull(period, Number),
      backupRetentionPeriodInHours: orNull(retention, Number),
      backupStartTime: orNull(startTime, String),
    };
    const path = `${await servicePath(api, values)}/backupConfiguration`;
    const { result } = await api.request({ method: "PATCH", path, body }, backupResult);
    printOne(io, output, result);
  },
});

function orNull<T>(text: string | undefined, parse: (text: string) => T): T | null | undefined {
  if (text === undefined) return undefined;
  return text === DEFAULT ? null : parse(text);
}

export const backup: CommandGroup = {
  name: "backup",
  summary: "show and change the backup settings of a service",
  commands: [get, set],
};
