import { backupConfiguration } from "../../api/resources/backup/schema.ts";
import {
  BACKUP_PERIODS_HOURS,
  BACKUP_RULES_TEXT,
  RETENTION_ALONE_RULE,
  START_TIME_ALONE_RULE,
} from "../../domain/backup-policy.ts";
import { option } from "../../settings/option.ts";
import { oneOf } from "../../settings/values.ts";
import { orWord, outputOption, requireChange } from "../options.ts";
import { printOne } from "../output.ts";
import { serviceArgument } from "./access.ts";
import { apiCommand, servicePath } from "./command.ts";
import { backup as backupResult, bodyValue } from "./responses.ts";

/** Stands for `null`, which resets a setting to its default. */
const DEFAULT = "default";

const { backupRetentionPeriodInHours, backupStartTime } = backupConfiguration.shape;

const get = apiCommand({
  name: "backup get",
  summary: "show the backup settings of a service",
  options: { ...serviceArgument, ...outputOption },
  async run(api, { service, output }, io) {
    const path = await servicePath(api, service, "backupConfiguration");
    const { result } = await api.request({ method: "GET", path }, backupResult);
    printOne(io, output, result);
  },
});

const changes = {
  period: option(oneOf(DEFAULT, ...BACKUP_PERIODS_HOURS.map(String)).optional(), {
    placeholder: "hours",
    description: `hours between backups: ${BACKUP_PERIODS_HOURS.join(", ")}`,
    flagOnly: true,
  }),
  retention: option(orWord(DEFAULT, bodyValue(backupRetentionPeriodInHours, Number)).optional(), {
    placeholder: "hours",
    description: "retention of a backup in hours",
    flagOnly: true,
  }),
  startTime: option(orWord(DEFAULT, bodyValue(backupStartTime, String)).optional(), {
    placeholder: "time",
    description: "a full hour in UTC",
    flagOnly: true,
  }),
};

const set = apiCommand({
  name: "backup set",
  summary: "change the backup settings of a service",
  details: `Settings that you omit keep their values, except as follows. The value ${DEFAULT} resets a setting to its default.\n${BACKUP_RULES_TEXT}.\n${START_TIME_ALONE_RULE}. ${RETENTION_ALONE_RULE}.`,
  examples: [
    "backup set <uuid> --period 12 --retention 72",
    "backup set <uuid> --period 24 --start-time 2:00",
  ],
  options: { ...serviceArgument, ...changes, ...outputOption },
  check: (values) => requireChange(changes, values),
  async run(api, { service, period, retention, startTime, output }, io) {
    // JSON leaves out a setting that is undefined.
    const body = {
      backupPeriodInHours: period === DEFAULT ? null : period && Number(period),
      backupRetentionPeriodInHours: retention === DEFAULT ? null : retention,
      backupStartTime: startTime === DEFAULT ? null : startTime,
    };
    const path = await servicePath(api, service, "backupConfiguration");
    const { result } = await api.request({ method: "PATCH", path, body }, backupResult);
    printOne(io, output, result);
  },
});

export const backup = [get, set];
