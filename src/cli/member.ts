import * as z from "zod";
import { isCode, isReplaced } from "../kube/errors.ts";
import type { ConfigMap } from "../kube/objects.ts";
import { CONFIG_MAPS } from "../kube/paths.ts";
import {
  formatMember,
  type Member,
  memberKey,
  membersConfigMap,
  membersConfigMapName,
} from "../records/members.ts";
import { withRecords } from "./cluster.ts";
import { defineCommand } from "./command.ts";
import { clusterOptions, outputOption, role } from "./common-options.ts";
import { CliError } from "./failure.ts";
import { option } from "./option.ts";
import { requireOrganization } from "./organization.ts";
import { printOne } from "./output.ts";
import type { Records } from "./records.ts";
import { emailAddress, nonEmptyText, uuid } from "./values.ts";

export const addMember = defineCommand({
  name: "add",
  summary: "add a member to an organization",
  examples: [
    "member add --organization <uuid> --user-id u-1 --name 'Ada Lovelace' --email ada@example.com --role admin",
  ],
  options: z.object({
    organization: option(uuid, { placeholder: "uuid", description: "id of the organization" }),
    userId: option(nonEmptyText, { placeholder: "text", description: "id of the user" }),
    name: option(nonEmptyText, { placeholder: "text", description: "name of the user" }),
    email: option(emailAddress, { placeholder: "address", description: "e-mail address of the user" }),
    role: option(role, { placeholder: "role", description: "admin or developer" }),
    ...outputOption,
    ...clusterOptions,
  }),
  async run({ organization, userId, name, email, role, output, ...cluster }, io) {
    const member = { userId, name, email, role, joinedAt: new Date() };
    await withRecords(cluster, async (records) => {
      await requireOrganization(records, organization);
      await add(records, organization, member);
    });
    printOne(io, output, { organizationId: organization, ...member });
  },
});

/** Each round of writers that meet lets one of them through, so this many may meet. */
const TRIES = 100;

/**
 * All members are in one object. The entry is put into just the object that was read, or else it is read
 * again: neither another's entry nor a removal is ever lost.
 */
async function add(records: Records, organizationId: string, member: Member): Promise<void> {
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (await tryToAdd(records, organizationId, member)) return;
  }
  throw new CliError(
    `The members of organization ${organizationId} were changed by others ${TRIES} times in a row; nothing was added, try again.`,
  );
}

async function tryToAdd(records: Records, organizationId: string, member: Member): Promise<boolean> {
  const object = await records.get<ConfigMap>(CONFIG_MAPS, membersConfigMapName(organizationId));
  if (!object) return records.createIfAbsent(CONFIG_MAPS, membersConfigMap(organizationId, [member]));
  const key = memberKey(member.userId);
  if (Object.hasOwn(object.data ?? {}, key)) {
    throw new CliError(
      `User ${member.userId} is a member of organization ${organizationId} already; the entry was left as it is.`,
    );
  }
  try {
    await records.setKey(CONFIG_MAPS, object, key, formatMember(member));
    return true;
  } catch (error) {
    // Changed, removed, or removed and made anew since it was read.
    if (isCode(error, 409) || isCode(error, 404) || isReplaced(error)) return false;
    throw error;
  }
}
