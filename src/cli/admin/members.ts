import * as z from "zod";
import type { ConfigMap } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import {
  formatMember,
  memberKey,
  membersConfigMap,
  membersConfigMapName,
  parseMembers,
} from "../../records/members.ts";
import { option } from "../../settings/option.ts";
import { nonEmptyText } from "../../settings/values.ts";
import { argument } from "../argument.ts";
import { outputOption, role, yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import { printList, printOne } from "../output.ts";
import { emailAddress } from "../values.ts";
import { recordsCommand } from "./command.ts";
import { membersOf, ORGANIZATIONS, requireRecord } from "./kinds.ts";
import { organizationOption } from "./options.ts";
import type { Records } from "./records.ts";
import { retryOnConflict } from "./retry.ts";

export const listMembers = recordsCommand({
  name: "list",
  summary: "list the members of an organization",
  examples: [
    "admin member list --organization <uuid>",
    "admin member list --organization <uuid> --output json",
  ],
  options: z.object({ ...organizationOption, ...outputOption }),
  async run(records, { organization, output }, io) {
    await requireRecord(records, ORGANIZATIONS, organization);
    const members = membersOf(io, await getMembers(records, organization));
    printList(io, output, ["userId", "name", "email", "role", "joinedAt"], members);
  },
});

function getMembers(records: Records, organizationId: string): Promise<ConfigMap | undefined> {
  return records.get<ConfigMap>(CONFIG_MAPS, membersConfigMapName(organizationId));
}

export const addMember = recordsCommand({
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
  }),
  async run(records, { organization, userId, name, email, role, output }, io) {
    const member = { userId, name, email, role, joinedAt: new Date() };
    const key = memberKey(userId);
    await requireRecord(records, ORGANIZATIONS, organization);
    await retryOnConflict(`The list of members of organization ${organization}`, async () => {
      const object = await getMembers(records, organization);
      if (!object) return await records.create(CONFIG_MAPS, membersConfigMap(organization, [member]));
      if (Object.hasOwn(object.data ?? {}, key)) {
        throw new CliError(
          `User ${userId} is a member of organization ${organization} already; the entry was left as it is.`,
        );
      }
      await records.change(CONFIG_MAPS, object, { data: { [key]: formatMember(member) } });
    });
    printOne(io, output, { organizationId: organization, ...member });
  },
});

export const removeMember = recordsCommand({
  name: "remove",
  summary: "remove a member from an organization",
  details: "The last admin cannot be removed. API keys belong to the organization, and go on to work.",
  examples: ["admin member remove u-1 --organization <uuid>"],
  arguments: z.object({ userId: argument(nonEmptyText, { description: "id of the user" }) }),
  options: z.object({ ...organizationOption, ...yesOption }),
  async run(records, { organization, userId, yes }, io) {
    const { name } = (await requireRecord(records, ORGANIZATIONS, organization)).record;
    await requireRemovable(records, organization, userId);
    await confirm(io, yes, `Remove user ${userId} from organization ${name} (${organization})?`);
    await retryOnConflict(`The list of members of organization ${organization}`, async () => {
      const object = await requireRemovable(records, organization, userId);
      await records.change(CONFIG_MAPS, object, { data: { [memberKey(userId)]: null } });
    });
    io.err(`User ${userId} is no longer a member of organization ${organization}.\n`);
  },
});

const ADMIN = "admin";

/**
 * All members are in one object, and a removal is written only to the version that it was decided on. So two removals
 * at the same time never take the last two admins.
 *
 * @throws CliError if there is no such member, or if it is the last admin
 */
async function requireRemovable(records: Records, organization: string, userId: string): Promise<ConfigMap> {
  const object = await getMembers(records, organization);
  const members = parseMembers(object?.data);
  const member = members.get(memberKey(userId));
  if (!object || !member) {
    throw new CliError(
      `User ${userId} is not a member of organization ${organization}: see admin member list --organization ${organization}.`,
    );
  }
  // A malformed entry does not count as an admin, so it can be removed.
  const admins = [...members.values()].filter((each) => each.ok && each.value.role === ADMIN);
  if (admins.includes(member) && admins.length === 1) {
    throw new CliError(
      `User ${userId} is the last admin of organization ${organization} and was left: make another member an admin first.`,
    );
  }
  return object;
}
