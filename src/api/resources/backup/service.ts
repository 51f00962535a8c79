import {
  BACKUP_RULES,
  type BackupChange,
  type BackupPolicy,
  changeBackupPolicy,
  DEFAULT_BACKUP_POLICY,
} from "../../../domain/backup-policy.ts";
import { isBeingDeleted } from "../../../kube/objects.ts";
import { backupConfigMap, backupConfigMapName, backupData } from "../../../records/backup.ts";
import type { Service } from "../../../records/service.ts";
import type { Logger } from "../../../telemetry/log.ts";
import type { ClusterCache } from "../../cluster/cluster-cache.ts";
import type { RecordWriter } from "../../cluster/record-writer.ts";
import { retryOnConflict } from "../../cluster/retry-on-conflict.ts";
import { type BackupView, labelsToAdd, toBackupView } from "../../cluster/views.ts";
import type { WriteQueue } from "../../cluster/write-queue.ts";
import { apiError, isNotConfirmed } from "../../errors.ts";
import type { Requester } from "../../middleware/request-context.ts";
import { readable, type ServiceParams } from "../path-params.ts";

/** A backup policy before and after a change. */
export interface BackupWrite {
  readonly before: BackupPolicy;
  readonly after: BackupPolicy;
}

export interface BackupServiceDeps {
  readonly cache: Pick<ClusterCache, "record" | "observeRecord">;
  readonly recordWriter: Pick<RecordWriter, "read" | "create" | "patch">;
  readonly backupWrites: WriteQueue<BackupWrite>;
  readonly log: Logger;
}

export function backupPolicy({ id }: Service, cache: Pick<ClusterCache, "record">): BackupPolicy {
  return policyOf(cache.record("backup", id));
}

/**
 * Changes the properties that were sent, and those that must follow ({@link changeBackupPolicy}). If another request
 * changes others at the same time, both changes are kept.
 *
 * @returns the stored policy, which a webhook of the cluster may have changed
 * @throws ApiError 400 if the properties contradict each other, or if admission denies the write, or the error of
 *   `permit`; then nothing has changed
 * @throws Error if the record is malformed; ApiError 503 otherwise
 */
export async function updateBackupPolicy(
  { organization, service }: ServiceParams,
  change: BackupChange,
  { requestId, apiKey, permit }: Requester,
  { cache, recordWriter, backupWrites, log }: BackupServiceDeps,
): Promise<BackupPolicy> {
  const write = async (permitted: () => void) => {
    const { before, written } = await retryOnConflict({
      cached: cache.record("backup", service.id),
      read: async () => {
        const record = await recordWriter.read(backupConfigMapName(service.id));
        return record && toBackupView(record);
      },
      attempt: async (current) => {
        permitted();
        const before = policyOf(current);
        const after = changeBackupPolicy(before, change);
        requireConsistent(after);
        // Written even if it changes nothing: only the cluster knows whether the cached version is current.
        const written = current
          ? await recordWriter.patch(current, {
              labels: labelsToAdd(current, organization.id),
              data: backupData(after),
            })
          : await recordWriter.create(backupConfigMap(service.id, organization.id, after));
        return { before, written };
      },
      what: "this backup configuration",
    });
    const view = toBackupView(written);
    cache.observeRecord(view);
    // A record that is being deleted takes the change with it.
    if (isBeingDeleted(view.metadata)) throw apiError("NotConfirmed");
    return { before, after: policyOf(view) };
  };
  const audit = { audit: "backup", requestId, apiKey, organization: organization.id, service: service.id };
  try {
    const { before, after } = await backupWrites.run(service.id, { permit, write });
    log.info({ ...audit, from: before, to: after }, "backup configuration changed");
    return after;
  } catch (err) {
    // The change may have been made anyway.
    if (isNotConfirmed(err)) {
      log.warn({ ...audit, change, err }, "change of the backup configuration not confirmed");
    }
    throw err;
  }
}

/** A value that was sent can contradict one that is stored. */
function requireConsistent(policy: BackupPolicy): void {
  const broken = BACKUP_RULES.find(({ isMet }) => !isMet(policy));
  if (broken) throw apiError("BackupContradiction", broken);
}

function policyOf(record: BackupView | undefined): BackupPolicy {
  return record ? readable(record.parsed) : DEFAULT_BACKUP_POLICY;
}
