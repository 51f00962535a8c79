import { type BackupDeps, backupPolicy, updateBackupPolicy } from "../backup.ts";
import { readBody } from "../body.ts";
import { type Records, serviceAt } from "../places.ts";
import type { Route } from "../routes.ts";
import {
  type BackupConfigurationObject,
  backupConfigurationPatch,
  toBackupConfiguration,
} from "../schemas.ts";

const path = "/v1/organizations/{organizationId}/services/{serviceId}/backupConfiguration";

export function backupRoutes(records: Records, backup: BackupDeps): readonly Route[] {
  return [
    {
      method: "GET",
      path,
      serve(call): BackupConfigurationObject {
        return toBackupConfiguration(backupPolicy(serviceAt(call, records), backup));
      },
    },
    {
      method: "PATCH",
      path,
      async serve(call): Promise<BackupConfigurationObject> {
        const place = serviceAt(call, records);
        const change = await readBody(call.request, backupConfigurationPatch);
        return toBackupConfiguration(await updateBackupPolicy(place, change, call, backup));
      },
    },
  ];
}
