import { memberKey, membersConfigMapName } from "../records/members.ts";
import type { Logger } from "../telemetry/log.ts";
import { type CachedMembers, toCachedMembers } from "./cached-objects.ts";
import type { Caches } from "./caches.ts";
import { isOutcomeUnknown } from "./cluster-refusal.ts";
import { changeObject } from "./object-change.ts";
import { type MemberPlace, readable } from "./places.ts";
import { invalid, notFound } from "./problem.ts";
import type { RecordWriter } from "./record-writer.ts";
import type { Call } from "./routes.ts";

export interface MembersDeps {
  readonly caches: Pick<Caches, "members" | "observeRecord">;
  readonly recordWriter: Pick<RecordWriter, "read" | "patch">;
  readonly log: Logger;
}

/** Role of those who may administer an organization. */
const ADMIN = "admin";

/**
 * Takes a member out of an organization.
 *
 * @throws Problem 404 if there is none, 400 for the last admin, and then nothing has changed; 503 otherwise
 */
export async function removeMember(
  { organization, userId }: MemberPlace,
  { requestId, key }: Pick<Call, "requestId" | "key">,
  { caches, recordWriter, log }: MembersDeps,
): Promise<void> {
  const entry = memberKey(userId);

  async function read(): Promise<CachedMembers | undefined> {
    const record = await recordWriter.read(membersConfigMapName(organization.id));
    return record && toCachedMembers(record);
  }

  /** A removal whose answer was lost has been made if the entry, which was there before, is gone. */
  async function remove(current: CachedMembers): Promise<CachedMembers | undefined> {
    try {
      return toCachedMembers(await recordWriter.patch(current, { data: { [entry]: null } }));
    } catch (error) {
      if (!isOutcomeUnknown(error)) throw error;
      const now = await read();
      if (now?.members.has(entry)) throw error;
      return now;
    }
  }

  const written = await changeObject({
    cached: caches.members(organization.id),
    read,
    attempt: (current) => remove(requireRemovable(current, entry)),
    what: "this change of the members",
  });
  if (written) caches.observeRecord(written);
  const audit = { audit: "members", requestId, apiKey: key.id, organization: organization.id };
  log.info({ ...audit, user: userId }, "member removed");
}

function requireRemovable(record: CachedMembers | undefined, entry: string): CachedMembers {
  const member = record?.members.get(entry);
  if (!record || !member) throw notFound("There is no such member in this organization.");
  if (readable(member).role === ADMIN && adminsOf(record) === 1) {
    throw invalid("This is the organization's last admin: make another member an admin first.");
  }
  return record;
}

/** An entry that cannot be read is nobody who could administer. */
function adminsOf({ members }: CachedMembers): number {
  return [...members.values()].filter((member) => member.ok && member.value.role === ADMIN).length;
}
