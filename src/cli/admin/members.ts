import * as z from "zod";
import type { ConfigMap } from "../../kube/objects.ts";
import { CONFIG_MAPS } from "../../kube/paths.ts";
import { recordLabels } from "../../records/labels.ts";
import {
  formatMember,
  isLastAdmin,
  type Member,
  memberKey,
  membersConfigMap,
  membersConfigMapName,
  parseMembers,
} from "../../records/members.ts";
import { option } from "../../settings/option.ts";
import { nonEmptyText, written } from "../../settings/values.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import type { Io } from "../io.ts";
import { argument, outputOption, type Place, programCommand, role, yesOption } from "../options.ts";
import { MEMBER_COLUMNS, printList, printOne } from "../output.ts";
import { recordsCommand } from "./command.ts";
import { ORGANIZATIONS, refuseDeleted } from "./kinds.ts";
import { organizationOption } from "./options.ts";
import type { Records } from "./records.ts";
import { retryOnConflict, withKnownOutcome } from "./retry.ts";

const list = recordsCommand({
  name: "admin member list",
  summary: "list the members of an organization",
  examples: [
    "admin member list --organization <uuid>",
    "admin member list --organization <uuid> --output json",
  ],
  options: { ...organizationOption, ...outputOption },
  async run(records, { organization, output }, io) {
    await ORGANIZATIONS.require(records, organization);
    printList(io, output, MEMBER_COLUMNS, await membersOf(records, io, organization));
  },
});

/** Returns the members in well-formed entries, and prints each problem of the other entries once on standard error. */
export async function membersOf(records: Records, io: Io, organizationId: string): Promise<Member[]> {
  const object = await getMembers(records, organizationId);
  const entries = [...parseMembers(membersConfigMapName(organizationId), object?.data).values()];
  // All entries that were not read have the same problem, so it is printed once.
  for (const problem of new Set(entries.flatMap((entry) => (entry.ok ? [] : [entry.problem])))) {
    io.err(`An entry of ${object?.metadata.name} is malformed and was skipped: ${problem}.\n`);
  }
  return entries.flatMap((entry) => (entry.ok ? [entry.value] : []));
}

function getMembers(records: Records, organizationId: string): Promise<ConfigMap | undefined> {
  return records.get<ConfigMap>(CONFIG_MAPS, membersConfigMapName(organizationId));
}

const emailAddress = written("it must be an e-mail address", (text) => z.email().safeParse(text).data);

const add = recordsCommand({
  name: "admin member add",
  summary: "add a member to an organization",
  examples: [
    "admin member add --organization <uuid> --user-id u-1 --name 'Ada Lovelace' --email ada@example.com --role admin",
  ],
  options: {
    ...organizationOption,
    userId: option(nonEmptyText, { placeholder: "text", description: "ID of the user" }),
    name: option(nonEmptyText, { placeholder: "text", description: "name of the user" }),
    email: option(emailAddress, { placeholder: "address", description: "e-mail address of the user" }),
    role: option(role, { placeholder: "role", description: "admin or developer" }),
    ...outputOption,
  },
  async run(records, { organization, output, ...given }, io) {
    const { userId } = given;
    const member = { ...given, joinedAt: new Date() };
    const key = memberKey(userId);
    await ORGANIZATIONS.requireLive(records, organization);
    await retryOnConflict(`The list of members of organization ${organization}`, async () => {
      const object = await getMembers(records, organization);
      if (object) {
        refuseDeleted(records.place, {
          resource: CONFIG_MAPS,
          object,
          what: `list of members of organization ${organization}`,
          remedy: "When it is gone, add the members again.",
        });
      }
      if (Object.hasOwn(object?.data ?? {}, key)) {
        throw new CliError(
          `User ${userId} is already a member of organization ${organization}. Nothing was changed.`,
        );
      }
      const entry = { [key]: formatMember(member) };
      const added = parseMembers(membersConfigMapName(organization), { ...object?.data, ...entry }).get(key);
      if (added?.ok === false) {
        throw new CliError(
          `User ${userId} was not added, because the record would be malformed: ${added.problem}.`,
        );
      }
      // Adds missing labels: the API does not see a record that a person created without them.
      const metadata = { labels: recordLabels("members", organization) };
      await withKnownOutcome<unknown>(
        object
          ? records.change(CONFIG_MAPS, object, { metadata, data: entry })
          : records.create(CONFIG_MAPS, membersConfigMap(organization, [member])),
        `User ${userId} may have been added: see \`${listCommand(records.place, organization)}\` before you run the command again`,
      );
    });
    printOne(io, output, { organizationId: organization, ...member });
  },
});

const remove = recordsCommand({
  name: "admin member remove",
  summary: "remove a member from an organization",
  details: "The last admin cannot be removed. API keys belong to the organization and continue to work.",
  examples: ["admin member remove u-1 --organization <uuid>"],
  options: { userId: argument(nonEmptyText, "ID of the user"), ...organizationOption, ...yesOption },
  async run(records, { organization, userId, yes }, io) {
    const { name } = await ORGANIZATIONS.require(records, organization);
    await requireRemovable(records, organization, userId);
    await confirm(io, yes, `Remove user ${userId} from organization ${name} (${organization})?`);
    await retryOnConflict(`The list of members of organization ${organization}`, async () => {
      const object = await requireRemovable(records, organization, userId);
      await withKnownOutcome(
        records.change(CONFIG_MAPS, object, { data: { [memberKey(userId)]: null } }),
        `User ${userId} may have been removed: see \`${listCommand(records.place, organization)}\` before you run the command again`,
      );
    });
    io.err(`User ${userId} is no longer a member of organization ${organization}.\n`);
  },
});

function listCommand(place: Place, organization: string): string {
  return programCommand(place, `admin member list --organization ${organization}`);
}

/**
 * All members are in one object, and a removal is written only to the version that it was decided on. So two removals
 * at the same time never take the last two admins.
 *
 * @throws CliError if there is no such member, or if it is the last admin
 */
async function requireRemovable(records: Records, organization: string, userId: string): Promise<ConfigMap> {
  const object = await getMembers(records, organization);
  const members = parseMembers(membersConfigMapName(organization), object?.data);
  if (!object || !members.has(memberKey(userId))) {
    throw new CliError(
      `User ${userId} is not a member of organization ${organization}. To list the members: ${listCommand(records.place, organization)}`,
    );
  }
  if (isLastAdmin(members, memberKey(userId))) {
    throw new CliError(
      `User ${userId} is the last admin of organization ${organization}, so nothing was changed. Add another admin first. To change the role of a member, remove the member and add them again.`,
    );
  }
  return object;
}

export const memberCommands = [add, list, remove];
