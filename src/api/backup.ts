import {
  type BackupChange,
  type BackupPolicy,
  changeBackupPolicy,
  DEFAULT_BACKUP_POLICY,
  START_TIME_RULE,
  startTimeFits,
} from "../domain/backup-policy.ts";
import { backupConfigMap, backupConfigMapName, backupData } from "../records/backup.ts";
import { recordLabels } from "../records/labels.ts";
import type { Logger } from "../telemetry/log.ts";
import { type CachedBackup, toCachedBackup } from "./cached-objects.ts";
import type { Caches } from "./caches.ts";
import { changeObject } from "./object-change.ts";
import { readable, type ServicePlace } from "./places.ts";
import { invalid } from "./problem.ts";
import type { RecordWriter } from "./record-writer.ts";
import type { Call } from "./routes.ts";

export interface BackupDeps {
  readonly caches: Pick<Caches, "backup" | "observeRecord">;
  readonly recordWriter: Pick<RecordWriter, "read" | "create" | "patch">;
  readonly log: Logger;
}

export function backupPolicy(
  { service }: ServicePlace,
  { caches }: Pick<BackupDeps, "caches">,
): BackupPolicy {
  return policyOf(caches.backup(service.id));
}

/**
 * Changes the properties that are sent and no others, also when somebody else changes those meanwhile.
 *
 * @returns the policy after the change
 * @throws Problem 400 if the properties do not go together, and then nothing has changed; 503 otherwise
 */
export async function updateBackupPolicy(
  { organization, service }: ServicePlace,
  change: BackupChange,
  { requestId, key }: Pick<Call, "requestId" | "key">,
  { caches, recordWriter, log }: BackupDeps,
): Promise<BackupPolicy> {
  const labels = recordLabels("backup", organization.id);
  const { before, after, written } = await changeObject({
    cached: caches.backup(service.id),
    read: async () => {
      const record = await recordWriter.read(backupConfigMapName(service.id));
      return record && toCachedBackup(record);
    },
    attempt: async (current) => {
      const before = policyOf(current);
      const after = changeBackupPolicy(before, change);
      if (!startTimeFits(after))
        throw invalid(`${START_TIME_RULE}: send one of these, or backupStartTime null.`);
      // Written also when it changes nothing: only the cluster knows whether it really would not.
      const written = current
        ? await recordWriter.patch(current, { labels, data: backupData(after) })
        : await recordWriter.create(backupConfigMap(service.id, organization.id, after));
      return { before, after, written };
    },
    what: "this backup configuration",
  });
  caches.observeRecord(toCachedBackup(written));
  const audit = { audit: "backup", requestId, apiKey: key.id, organization: organization.id };
  log.info({ ...audit, service: service.id, from: before, to: after }, "backup configuration changed");
  return after;
}

function policyOf(record: CachedBackup | undefined): BackupPolicy {
  return record ? readable(record.parsed) : DEFAULT_BACKUP_POLICY;
}
