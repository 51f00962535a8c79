import * as z from "zod";
import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import { type Members, memberKey, membersConfigMapName, parseMembers } from "../../../records/members.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { nonEmptyText } from "../../../settings/values.ts";
import { argument } from "../../argument.ts";
import { defineCommand } from "../../command.ts";
import { yesOption } from "../../common-options.ts";
import { confirm } from "../../confirm.ts";
import { CliError } from "../../failure.ts";
import { withRecords } from "../cluster.ts";
import { organizationOption } from "../common-options.ts";
import { untilUndisturbed } from "../guarded.ts";
import { findOrganization } from "../organization/find.ts";
import type { Records } from "../records.ts";

export const removeMember = defineCommand({
  name: "remove",
  summary: "remove a member from an organization",
  details: "The last admin cannot be removed. API keys belong to the organization, and go on to work.",
  examples: ["admin member remove u-1 --organization <uuid>"],
  arguments: z.object({ userId: argument(nonEmptyText, { description: "id of the user" }) }),
  options: z.object({ ...organizationOption, ...yesOption, ...clusterSettings }),
  async run({ organization, userId, yes, ...cluster }, io) {
    await withRecords(cluster, io, async (records) => {
      const { name } = (await findOrganization(records, organization)).organization;
      await requireRemovable(records, organization, userId);
      await confirm(io, yes, `Remove user ${userId} from organization ${name} (${organization})?`);
      await untilUndisturbed(`The list of members of organization ${organization}`, async () => {
        const object = await requireRemovable(records, organization, userId);
        await records.change(CONFIG_MAPS, object, { [memberKey(userId)]: null });
        return object;
      });
    });
    io.err(`User ${userId} is no longer a member of organization ${organization}.\n`);
  },
});

const ADMIN = "admin";

/**
 * All members are in one object, and the removal is written to just the version that this was decided on: two
 * removals at once can never take the last two admins.
 *
 * @throws CliError when there is no such member, or nobody could administer the organization without
 */
async function requireRemovable(
  records: Records,
  organizationId: string,
  userId: string,
): Promise<ConfigMap> {
  const object = await records.get<ConfigMap>(CONFIG_MAPS, membersConfigMapName(organizationId));
  const members = parseMembers(object?.data);
  const member = members.get(memberKey(userId));
  if (!object || !member) {
    throw new CliError(
      `User ${userId} is no member of organization ${organizationId}: see admin member list --organization ${organizationId}.`,
    );
  }
  // An entry that cannot be read is nobody who could administer: it may go.
  if (member.ok && member.value.role === ADMIN && adminsOf(members) === 1) {
    throw new CliError(
      `User ${userId} is the last admin of organization ${organizationId} and was left: make another member an admin first.`,
    );
  }
  return object;
}

function adminsOf(members: Members): number {
  return [...members.values()].filter((member) => member.ok && member.value.role === ADMIN).length;
}
