import { randomUUID } from "node:crypto";
import { type ConfigMap, isBeingDeleted } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import { type ApiKey, apiKeySecret, newCredentials } from "../../records/api-key.ts";
import { keyUsageConfigMapName, parseKeyUsage } from "../../records/key-usage.ts";
import { ORGANIZATION_LABEL } from "../../records/labels.ts";
import { instant } from "../../records/parse.ts";
import { option } from "../../settings/option.ts";
import { addressOrCidr, listOf, nonEmptyText, written } from "../../settings/values.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import { orWord, outputOption, programCommand, requireChange, roles, yesOption } from "../options.ts";
import { printList, printOne } from "../output.ts";
import { recordsCommand } from "./command.ts";
import { rotate } from "./key-rotate.ts";
import { KEYS, type NamedKey, ORGANIZATIONS } from "./kinds.ts";
import { keyArgument, newNameOption, organizationOption } from "./options.ts";
import { deleteUnlessChanged, withFoundOutcome } from "./retry.ts";

/** docs/reference/contract.md#limits */
const MAX_KEYS = 100;

/** With any offset from UTC. */
const expiry = written("it must be a date and time to come, such as 2030-01-31T12:00:00Z", (text) => {
  const { data } = instant.safeParse(text);
  return data && data.getTime() > Date.now() ? data : undefined;
});

/** Converts addresses to the format of the record. */
function accessList(sources: readonly string[]): ApiKey["ipAccessList"] {
  return sources.map((source) => ({ description: "", source }));
}

const create = recordsCommand({
  name: "admin key create",
  summary: "create an API key of an organization",
  details:
    "Prints the key ID and the key secret, which are the user name and the password of HTTP Basic.\n" +
    "They cannot be shown again, because the cluster stores only hashes of them.",
  examples: [
    "admin key create --organization <uuid> --name ci --role admin",
    "admin key create --organization <uuid> --name dashboards --role developer --allow-from 10.0.0.0/8 --output json",
  ],
  options: {
    ...organizationOption,
    name: option(nonEmptyText, { placeholder: "text", description: "name of the key" }),
    role: option(roles, {
      placeholder: "role",
      description: "admin can use all operations, developer can only read",
      list: true,
    }),
    expireAt: option(expiry.optional(), {
      placeholder: "time",
      description: "expiration time, such as 2030-01-31T12:00:00Z (default: never)",
    }),
    allowFrom: option(listOf(addressOrCidr).optional(), {
      placeholder: "cidr",
      description: "addresses that can use the key (default: all)",
      list: true,
    }),
    ...outputOption,
  },
  async run(records, { organization, name, role, expireAt, allowFrom = [], output }, io) {
    const shown = {
      id: randomUUID(),
      organizationId: organization,
      name,
      roles: [...new Set(role)],
      createdAt: new Date(),
      expireAt,
    };
    const credentials = newCredentials();
    const listKeys = programCommand(records.place, `admin key list --organization ${organization}`);
    await ORGANIZATIONS.requireLive(records, organization);
    const secrets = await records.list(SECRETS, "api-key", organization);
    const { length } = secrets.filter(({ metadata }) => !isBeingDeleted(metadata));
    if (length >= MAX_KEYS) {
      const deleteKey = programCommand(records.place, "admin key delete <uuid>");
      throw new CliError(
        `Organization ${organization} has ${length} API keys, and the maximum is ${MAX_KEYS}. Delete one first (\`${listKeys}\`, \`${deleteKey}\`).`,
      );
    }
    const secret = apiKeySecret({ ...shown, ipAccessList: accessList(allowFrom) }, credentials);
    await withFoundOutcome<unknown>(
      records.create(SECRETS, secret),
      // Reads after Ctrl-C, too, so that the secret is not lost.
      () => records.uninterrupted().get(SECRETS, secret.metadata.name),
      {
        notMade: "The key was not created, so you can run the command again",
        unknown: `The key may have been created, but its secret is lost. If \`${listKeys}\` lists the ID ${shown.id}, delete that key`,
      },
    );
    const deleteIt = programCommand(records.place, `admin key delete ${shown.id}`);
    // Before the secret and in every format, because the output can fail.
    io.err(`Save the key secret now. It cannot be shown again. If it is lost, delete the key: ${deleteIt}\n`);
    printOne(io, output, { ...credentials, ...shown, allowFrom });
  },
});

/** The properties of a key that are shown. The key ID and the secrets are not stored. */
function shownKey(key: NamedKey) {
  const { id, organizationId, name, keySuffix, roles, createdAt, expireAt, secretName } = key;
  const state = key.isBeingDeleted ? "deleting" : key.state;
  const allowFrom = key.ipAccessList.map(({ source }) => source);
  const secrets = key.secretHashes.length;
  return {
    id,
    organizationId,
    name,
    keySuffix,
    state,
    roles,
    createdAt,
    expireAt,
    allowFrom,
    secrets,
    secretName,
  };
}

const list = recordsCommand({
  name: "admin key list",
  summary: "list the API keys of an organization",
  details:
    "Key IDs and secrets are not stored, so they are not shown. The state deleting means that a finalizer keeps the\n" +
    "Secret of a deleted key, which the API rejects.",
  examples: ["admin key list --organization <uuid>"],
  options: { ...organizationOption, ...outputOption },
  async run(records, { organization, output }, io) {
    const keys = await KEYS.list(records, io, organization);
    const columns = ["id", "name", "keySuffix", "state", "roles", "createdAt", "expireAt", "secretName"];
    printList(io, output, columns, keys.map(shownKey));
  },
});

const show = recordsCommand({
  name: "admin key show",
  summary: "show an API key, and when it was last used",
  details:
    "A key has two secrets during a rotation. The time of the last use is precise to a minute, and appears a\n" +
    "little later.",
  options: { ...keyArgument, ...outputOption },
  async run(records, { key: id, output }, io) {
    const key = await KEYS.require(records, id);
    const usageName = keyUsageConfigMapName(key.organizationId);
    const usage = await records.get<ConfigMap>(CONFIG_MAPS, usageName);
    const used = parseKeyUsage(usageName, usage?.data).get(id);
    printOne(io, output, { ...shownKey(key), usedAt: used?.ok ? used.value : undefined });
  },
});

const changes = {
  ...newNameOption,
  role: option(roles.optional(), {
    placeholder: "role",
    description: "new roles, which replace all current ones",
    list: true,
    flagOnly: true,
  }),
  expireAt: option(orWord("never", expiry).optional(), {
    placeholder: "time",
    description: "new expiration time, such as 2030-01-31T12:00:00Z, or never",
    flagOnly: true,
  }),
  allowFrom: option(orWord("all", listOf(addressOrCidr)).optional(), {
    placeholder: "cidr",
    description: "addresses that can use the key, which replace the current ones, or all",
    list: true,
    flagOnly: true,
  }),
};

const update = recordsCommand({
  name: "admin key update",
  summary: "change the name, roles, expiry or addresses of an API key",
  details: "Values that you omit do not change. To change the secret, use `admin key rotate`.",
  examples: [
    "admin key update <uuid> --expire-at 2030-01-31T12:00:00Z",
    "admin key update <uuid> --allow-from 10.0.0.0/8 --allow-from 192.0.2.7",
  ],
  options: { ...keyArgument, ...changes, ...outputOption },
  check: (values) => requireChange(changes, values),
  async run(records, { key: id, output, name, role, expireAt, allowFrom }, io) {
    const change = {
      name,
      roles: role && JSON.stringify([...new Set(role)]),
      expireAt: expireAt === "never" ? null : expireAt?.toISOString(),
      ipAccessList: allowFrom === "all" ? null : allowFrom && JSON.stringify(accessList(allowFrom)),
    };
    printOne(io, output, shownKey(await KEYS.change(records, id, () => change)));
  },
});

const disable = stateCommand("disable", "disabled", "disable an API key until it is enabled again");
const enable = stateCommand("enable", "enabled", "enable an API key again");

function stateCommand(name: string, state: ApiKey["state"], summary: string) {
  return recordsCommand({
    name: `admin key ${name}`,
    summary,
    details: "The change reaches every replica of the API within a second.",
    options: keyArgument,
    async run(records, { key: id }, io) {
      let already = "";
      const decide = (before: ApiKey) => {
        already = before.state === state ? " already" : "";
        return { state };
      };
      const key = await KEYS.change(records, id, decide);
      io.err(`API key ${key.name} (${id}) is ${state}${already}.\n`);
    },
  });
}

const remove = recordsCommand({
  name: "admin key delete",
  summary: "delete an API key permanently",
  details: "Every replica of the API rejects it within a second.",
  options: { ...keyArgument, ...yesOption },
  async run(records, { key: id, yes }, io) {
    const secret = await KEYS.requireObject(records, id);
    const owner = secret.metadata.labels?.[ORGANIZATION_LABEL];
    await confirm(io, yes, `Delete ${KEYS.describe(secret, id)} of organization ${owner}?`);
    await deleteUnlessChanged(records, `API key ${id}`, [{ resource: SECRETS, object: secret }]);
    io.err(`API key ${id} is deleted.\n`);
  },
});

export const keyCommands = [create, list, show, update, rotate, disable, enable, remove];
