import { isOutcomeUnknown } from "../../../kube/errors.ts";
import type { KubeObject } from "../../../kube/objects.ts";
import { isLastAdmin, type Member, memberKey, membersConfigMapName } from "../../../records/members.ts";
import type { Logger } from "../../../telemetry/log.ts";
import type { ClusterCache } from "../../cluster/cluster-cache.ts";
import type { RecordWriter } from "../../cluster/record-writer.ts";
import { retryOnConflict } from "../../cluster/retry-on-conflict.ts";
import { labelsToAdd, type MembersView, toMembersView } from "../../cluster/views.ts";
import type { WriteQueue } from "../../cluster/write-queue.ts";
import { apiError, isNotConfirmed } from "../../errors.ts";
import type { Requester } from "../../middleware/request-context.ts";
import { type MemberParams, readable } from "../path-params.ts";

interface MembersCache {
  record(kind: "members", organizationId: string): MembersView | undefined;
}

export interface MembersServiceDeps {
  readonly cache: MembersCache & Pick<ClusterCache, "observeRecord">;
  readonly recordWriter: Pick<RecordWriter, "read" | "patch">;
  readonly memberWrites: WriteQueue<MembersView | undefined>;
  readonly log: Logger;
}

/** Returns the well-formed members of an organization in the order in which they joined. */
export function listedMembers(organizationId: string, cache: MembersCache): readonly Member[] {
  const entries = [...(cache.record("members", organizationId)?.members.values() ?? [])];
  return entries.flatMap((entry) => (entry.ok ? [entry.value] : [])).toSorted(byJoining);
}

/** The ID breaks ties, so that the order is always the same. */
function byJoining(a: Member, b: Member): number {
  return (
    a.joinedAt.getTime() - b.joinedAt.getTime() || Number(a.userId > b.userId) - Number(a.userId < b.userId)
  );
}

/**
 * Removes a member from an organization.
 *
 * @throws ApiError 404 if the member does not exist, 400 for the last admin or if admission denies the write, or the
 *   error of `permit`; then nothing has changed
 * @throws Error if the entry of the member is malformed; ApiError 503 otherwise
 */
export async function removeMember(
  { organization, userId }: MemberParams,
  { requestId, apiKey, permit }: Requester,
  { cache, recordWriter, memberWrites, log }: MembersServiceDeps,
): Promise<void> {
  const entry = memberKey(userId);

  /** Parses the record only if it is not the cached version: a large one takes long, and each refusal needs a read. */
  async function read(): Promise<MembersView | undefined> {
    const record = await recordWriter.read(membersConfigMapName(organization.id));
    const cached = cache.record("members", organization.id);
    if (record && cached && isSameVersion(record, cached)) return cached;
    return record && toMembersView(record);
  }

  /** If the outcome is unknown, a read decides: the removal succeeded if the entry, which existed before, is gone. */
  async function remove(current: MembersView): Promise<MembersView | undefined> {
    // A record that an administrator created without labels gets them, as the admission policy requires.
    const labels = labelsToAdd(current, organization.id);
    try {
      return toMembersView(await recordWriter.patch(current, { labels, data: { [entry]: null } }));
    } catch (error) {
      if (!isOutcomeUnknown(error)) throw error;
      const now = await read().catch(() => {
        throw error;
      });
      if (now?.members.has(entry)) throw error;
      return now;
    }
  }

  const audit = { audit: "members", requestId, apiKey, organization: organization.id, user: userId };
  try {
    const write = async (permitted: () => void) => {
      const written = await retryOnConflict({
        cached: cache.record("members", organization.id),
        read,
        attempt: async (current) => {
          permitted();
          return await remove(requireRemovable(current, entry));
        },
        what: "this change of the members",
      });
      if (written) cache.observeRecord(written);
      // Only a webhook can have kept the member in the write.
      if (written?.members.has(entry)) {
        throw apiError("NotConfirmed").with({ cause: new Error("the stored record has the member") });
      }
      return written;
    };
    await memberWrites.run(organization.id, { permit, write });
    log.info(audit, "member removed");
  } catch (err) {
    // The member may have been removed anyway.
    if (isNotConfirmed(err)) log.warn({ ...audit, err }, "removal of a member not confirmed");
    throw err;
  }
}

function requireRemovable(record: MembersView | undefined, entry: string): MembersView {
  const member = record?.members.get(entry);
  if (!record || !member) throw apiError("NoSuchMember");
  readable(member);
  if (isLastAdmin(record.members, entry)) throw apiError("LastAdmin");
  return record;
}

function isSameVersion({ metadata: a }: KubeObject, { metadata: b }: KubeObject): boolean {
  return a.uid === b.uid && a.resourceVersion === b.resourceVersion;
}
