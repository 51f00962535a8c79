import * as z from "zod";
import type { ConfigMap } from "../../../kube/objects.ts";
import { CONFIG_MAPS } from "../../../kube/paths.ts";
import {
  formatMember,
  type Member,
  memberKey,
  membersConfigMap,
  membersConfigMapName,
} from "../../../records/members.ts";
import { clusterSettings } from "../../../settings/cluster.ts";
import { option } from "../../../settings/option.ts";
import { nonEmptyText } from "../../../settings/values.ts";
import { defineCommand } from "../../command.ts";
import { outputOption, role } from "../../common-options.ts";
import { CliError } from "../../failure.ts";
import { printOne } from "../../output.ts";
import { emailAddress } from "../../values.ts";
import { withRecords } from "../cluster.ts";
import { organizationOption } from "../common-options.ts";
import { untilUndisturbed } from "../guarded.ts";
import { findOrganization } from "../organization/find.ts";
import type { Records } from "../records.ts";

export const addMember = defineCommand({
  name: "add",
  summary: "add a member to an organization",
  examples: [
    "admin member add --organization <uuid> --user-id u-1 --name 'Ada Lovelace' --email ada@example.com --role admin",
  ],
  options: z.object({
    ...organizationOption,
    userId: option(nonEmptyText, { placeholder: "text", description: "id of the user" }),
    name: option(nonEmptyText, { placeholder: "text", description: "name of the user" }),
    email: option(emailAddress, { placeholder: "address", description: "e-mail address of the user" }),
    role: option(role, { placeholder: "role", description: "admin or developer" }),
    ...outputOption,
    ...clusterSettings,
  }),
  async run({ organization, userId, name, email, role, output, ...cluster }, io) {
    const member = { userId, name, email, role, joinedAt: new Date() };
    await withRecords(cluster, io, async (records) => {
      await findOrganization(records, organization);
      await untilUndisturbed(`The list of members of organization ${organization}`, () =>
        tryToAdd(records, organization, member),
      );
    });
    printOne(io, output, { organizationId: organization, ...member });
  },
});

/**
 * All members are in one object. The entry is put into just the object that was read: neither another's
 * entry nor a removal is ever lost.
 *
 * @returns undefined when others were the first to make that object
 */
async function tryToAdd(records: Records, organizationId: string, member: Member): Promise<true | undefined> {
  const object = await records.get<ConfigMap>(CONFIG_MAPS, membersConfigMapName(organizationId));
  if (!object) {
    const first = membersConfigMap(organizationId, [member]);
    return (await records.createIfAbsent(CONFIG_MAPS, first)) || undefined;
  }
  const key = memberKey(member.userId);
  if (Object.hasOwn(object.data ?? {}, key)) {
    throw new CliError(
      `User ${member.userId} is a member of organization ${organizationId} already; the entry was left as it is.`,
    );
  }
  await records.change(CONFIG_MAPS, object, { [key]: formatMember(member) });
  return true;
}
