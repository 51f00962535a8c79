import { START_TIME_RULE } from "../../domain/backup-policy.ts";
import { type BackupDeps, backupPolicy, updateBackupPolicy } from "../backup.ts";
import {
  type BackupConfigurationObject,
  backupConfiguration,
  backupConfigurationPatch,
  toBackupConfiguration,
} from "../backup-schema.ts";
import { readBody } from "../body.ts";
import { type Records, serviceAt } from "../places.ts";
import type { Operation, Route } from "../routes.ts";

const path = "/v1/organizations/{organizationId}/services/{serviceId}/backupConfiguration";

const NOT_FOUND = "There is no such organization, or it is not the key's own; or it has no such service.";

const read = {
  id: "getBackupConfiguration",
  tag: "Backup",
  summary: "Get the backup configuration of a service",
  description: "The defaults where nothing else was set. Without a `backupStartTime`, none is set.",
  result: backupConfiguration,
  refusals: { 404: NOT_FOUND },
} as const satisfies Operation;

const update = {
  id: "updateBackupConfiguration",
  tag: "Backup",
  summary: "Change the backup configuration of a service",
  description: "For keys with the role `admin`. The answer is the whole configuration after the change.",
  body: backupConfigurationPatch,
  result: backupConfiguration,
  refusals: {
    400: `An id in the path is no UUID, or the body is not one that is allowed. Also: ${START_TIME_RULE}.`,
    404: NOT_FOUND,
  },
} as const satisfies Operation;

export function backupRoutes(records: Records, backup: BackupDeps): readonly Route[] {
  return [
    {
      method: "GET",
      path,
      operation: read,
      serve(call): BackupConfigurationObject {
        return toBackupConfiguration(backupPolicy(serviceAt(call, records), backup));
      },
    },
    {
      method: "PATCH",
      path,
      operation: update,
      async serve(call): Promise<BackupConfigurationObject> {
        const place = serviceAt(call, records);
        const change = await readBody(call.request, update.body);
        return toBackupConfiguration(await updateBackupPolicy(place, change, call, backup));
      },
    },
  ];
}
