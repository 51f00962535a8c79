import * as z from "zod";
import type { ConfigMap } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import {
  formatMember,
  type Member,
  type Members,
  memberKey,
  membersConfigMap,
  membersConfigMapName,
  parseMembers,
} from "../../records/members.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { option } from "../../settings/option.ts";
import { nonEmptyText } from "../../settings/values.ts";
import { argument } from "../argument.ts";
import { defineCommand } from "../command.ts";
import { outputOption, role, yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import { printList, printOne } from "../output.ts";
import { emailAddress } from "../values.ts";
import { withRecords } from "./connection.ts";
import { findOrganization, membersOf } from "./find.ts";
import { organizationOption } from "./options.ts";
import type { Records } from "./records.ts";
import { untilUndisturbed } from "./retry.ts";

export const listMembers = defineCommand({
  name: "list",
  summary: "list the members of an organization",
  examples: [
    "admin member list --organization <uuid>",
    "admin member list --organization <uuid> --output json",
  ],
  options: z.object({ ...organizationOption, ...outputOption, ...clusterSettings }),
  async run({ organization, output, ...cluster }, io) {
    const object = await withRecords(cluster, io, async (records) => {
      await findOrganization(records, organization);
      return await records.get<ConfigMap>(CONFIG_MAPS, membersConfigMapName(organization));
    });
    printList(
      io,
      output,
      ["userId", "name", "email", "role", "joinedAt"],
      membersOf(io, object).map((member) => ({ ...member })),
    );
  },
});

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
 * @throws CliError if there is no such member, or if it is the last admin
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
      `User ${userId} is not a member of organization ${organizationId}: see admin member list --organization ${organizationId}.`,
    );
  }
  // A malformed entry does not count as an admin, so it can be removed.
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
