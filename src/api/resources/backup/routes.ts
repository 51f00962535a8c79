import type { Router } from "express";
import { BACKUP_RULES_TEXT } from "../../../domain/backup-policy.ts";
import { authorize } from "../../middleware/authorize.ts";
import { readJsonBody } from "../../middleware/json-body.ts";
import { methodNotAllowed } from "../../middleware/not-found.ts";
import { requesterOf } from "../../middleware/request-context.ts";
import { sendResult } from "../../middleware/respond.ts";
import type { Operation } from "../../openapi/operation.ts";
import { expressPaths, type PathAliases } from "../../path-aliases.ts";
import { permitService, serviceParams, type TenantRecords } from "../path-params.ts";
import { createRouter } from "../router.ts";
import { backupConfiguration, backupConfigurationPatch, toBackupConfiguration } from "./schema.ts";
import { type BackupServiceDeps, backupPolicy, updateBackupPolicy } from "./service.ts";

const path = "/v1/organizations/{organizationId}/services/{serviceId}/backupConfiguration";

const NOT_FOUND =
  "The organization does not exist, or the key belongs to another one; or it has no such service.";

export const getBackupConfiguration = {
  method: "GET",
  path,
  id: "getBackupConfiguration",
  tag: "Backup",
  summary: "Get the backup configuration of a service",
  description:
    "Values that were never changed are the defaults. `backupStartTime` is absent if it is not set.",
  result: backupConfiguration,
  refusals: { 404: NOT_FOUND },
} as const satisfies Operation;

export const updateBackupConfiguration = {
  method: "PATCH",
  path,
  id: "updateBackupConfiguration",
  tag: "Backup",
  summary: "Change the backup configuration of a service",
  description: "Requires the role `admin`. Returns the whole configuration after the change.",
  body: {
    schema: () => backupConfigurationPatch,
    example: { backupPeriodInHours: 24, backupRetentionPeriodInHours: 72, backupStartTime: "2:00" },
  },
  result: backupConfiguration,
  refusals: {
    400: `An ID in the path is not a UUID, or the body is invalid. In particular, ${BACKUP_RULES_TEXT}; this holds for the values that the request sends and those that are stored.`,
    404: NOT_FOUND,
  },
} as const satisfies Operation;

export interface BackupDeps extends BackupServiceDeps {
  readonly cache: TenantRecords & BackupServiceDeps["cache"];
  readonly pathAliases: PathAliases;
}

export function backupRouter(deps: BackupDeps): Router {
  const { cache, pathAliases } = deps;
  const router = createRouter();
  router
    .route(expressPaths(path, pathAliases))
    .get(authorize, (request, response) => {
      const { service } = serviceParams(request, cache);
      sendResult(response, toBackupConfiguration(backupPolicy(service, cache)));
    })
    .patch(authorize, async (request, response) => {
      const params = serviceParams(request, cache);
      const change = await readJsonBody(request, response, backupConfigurationPatch);
      const requester = requesterOf(request, () => permitService(request, cache, params));
      const policy = await updateBackupPolicy(params, change, requester, deps);
      sendResult(response, toBackupConfiguration(policy));
    })
    .all(methodNotAllowed);
  return router;
}
