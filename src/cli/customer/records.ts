import { written } from "../../settings/values.ts";
import { confirm } from "../confirm.ts";
import { argument, outputOption, yesOption } from "../options.ts";
import { MEMBER_COLUMNS, printList } from "../output.ts";
import { apiCommand, organizationPath, ownOrganization } from "./command.ts";
import * as responses from "./responses.ts";

export const organizations = apiCommand({
  name: "organizations",
  summary: "show the organization of the API key",
  details: "`pipe-scaling admin organization list` lists all organizations of a cluster.",
  options: outputOption,
  async run(api, { output }, io) {
    const path = "/v1/organizations";
    const { result } = await api.request({ method: "GET", path }, responses.organizations);
    printList(io, output, ["id", "name", "createdAt"], result);
  },
});

export const services = apiCommand({
  name: "services",
  summary: "list the services of the organization",
  details: "The commands `scaling` and `backup` need the ID of a service.",
  options: outputOption,
  async run(api, { output }, io) {
    const path = `${await organizationPath(api)}/services`;
    const { result } = await api.request({ method: "GET", path }, responses.services);
    printList(io, output, ["id", "name"], result);
  },
});

const KEY_COLUMNS = ["name", "keySuffix", "state", "roles", "createdAt", "expireAt", "usedAt", "allowFrom"];

export const keys = apiCommand({
  name: "keys",
  summary: "list the API keys of the organization",
  details: "KEY SUFFIX is the end of the key ID. Secrets are never shown.",
  options: outputOption,
  async run(api, { output }, io) {
    const path = `${await organizationPath(api)}/keys`;
    const { result } = await api.request({ method: "GET", path }, responses.apiKeys);
    const rows = result.map((key) => ({ ...key, allowFrom: key.ipAccessList.map(({ source }) => source) }));
    printList(io, output, KEY_COLUMNS, output === "table" ? rows : result);
  },
});

const list = apiCommand({
  name: "members list",
  summary: "list the members of the organization",
  options: outputOption,
  async run(api, { output }, io) {
    const path = `${await organizationPath(api)}/members`;
    const { result } = await api.request({ method: "GET", path }, responses.members);
    printList(io, output, MEMBER_COLUMNS, result);
  },
});

/** Not trimmed: the ID of a user may have any form. */
const userId = written("it must not be empty", (text) => text || undefined);

const remove = apiCommand({
  name: "members remove",
  summary: "remove a member from the organization",
  details:
    "Asks for confirmation unless you specify --yes. The last admin of an organization cannot be removed.",
  examples: ["members remove u-1", "members remove u-1 --yes"],
  options: { user: argument(userId, "ID of the user (see `pipe-scaling members list`)"), ...yesOption },
  async run(api, { user, yes }, io) {
    const { id, name } = await ownOrganization(api);
    const from = `the organization ${name} (${id})`;
    await confirm(io, yes, `Remove the user ${JSON.stringify(user)} from ${from}?`);
    const path = `/v1/organizations/${encodeURIComponent(id)}/members/${encodeURIComponent(user)}`;
    const { requestId } = await api.request({ method: "DELETE", path }, responses.nothing);
    io.err(`Removed the user ${JSON.stringify(user)} (request ${requestId}).\n`);
  },
});

export const members = [list, remove];
