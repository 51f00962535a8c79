import * as z from "zod";
import { written } from "../../settings/values.ts";
import { argument } from "../argument.ts";
import { type CommandGroup, defineCommand } from "../command.ts";
import { yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { printable } from "../view/text.ts";
import { accessOptions, organizationOption } from "./access.ts";
import { nothing } from "./answers.ts";
import { withApi } from "./api.ts";
import { organizationPath, ownOrganization } from "./places.ts";

/** Of any form: not trimmed, and not looked into. */
const userId = written("it must not be empty", (text) => text || undefined);

const remove = defineCommand({
  name: "remove",
  summary: "remove a member from the organization",
  details: "Asks first, unless it is told --yes. The last admin of an organization cannot be removed.",
  examples: ["members remove u-1", "members remove u-1 --yes"],
  arguments: z.object({ user: argument(userId, { description: "id of the user" }) }),
  options: z.object({ ...yesOption, ...organizationOption, ...accessOptions }),
  async run({ user, yes, organization, ...access }, io) {
    await withApi(access, io, async (api) => {
      const own =
        organization === undefined ? await ownOrganization(api) : { id: organization, name: undefined };
      const named = own.name === undefined ? own.id : `${printable(own.name)} (${own.id})`;
      await confirm(io, yes, `Remove the user ${JSON.stringify(user)} from the organization ${named}?`);
      const path = `${organizationPath(own.id)}/members/${encodeURIComponent(user)}`;
      const { requestId } = await api.ask({ method: "DELETE", path }, nothing);
      io.err(`The user ${JSON.stringify(user)} is no member any more (request ${requestId}).\n`);
    });
  },
});

export const members: CommandGroup = {
  name: "members",
  summary: "remove members from the organization, by the HTTP API",
  commands: [remove],
};
