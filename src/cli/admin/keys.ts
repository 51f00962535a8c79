import * as z from "zod";
import type { ConfigMap } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import type { ApiKey } from "../../records/api-key.ts";
import { keyUsageConfigMapName, parseKeyUsage } from "../../records/key-usage.ts";
import { option } from "../../settings/option.ts";
import { outputOption, yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { printList, printOne } from "../output.ts";
import { uuid } from "../values.ts";
import { recordsCommand } from "./command.ts";
import {
  base64,
  changeRecord,
  KEYS,
  keyArgument,
  listRecords,
  type NamedKey,
  requireObject,
  requireRecord,
} from "./kinds.ts";
import { organizationOption } from "./options.ts";
import { deleteUnlessChanged } from "./retry.ts";

/** A cluster may have very many keys, and the id is in none of their names. */
export const ofOrganization = {
  organization: option(uuid.optional(), {
    placeholder: "uuid",
    description: "look only among the keys of this organization, which is faster",
  }),
};

/** The properties of a key that are shown. The key id and the secrets are not stored. */
export function shownKey(key: NamedKey) {
  const { id, organizationId, name, keySuffix, state, roles, createdAt, expireAt, ipAccessList } = key;
  const allowFrom = ipAccessList.map(({ source }) => source);
  const secrets = key.secretHashes.length;
  return {
    ...{ id, organizationId, name, keySuffix, state, roles, createdAt, expireAt },
    ...{ allowFrom, secrets, secretName: key.secretName },
  };
}

export const listKeys = recordsCommand({
  name: "list",
  summary: "list the API keys of an organization",
  details: "Key ids and secrets are not stored, so they are not shown.",
  examples: ["admin key list --organization <uuid>"],
  options: z.object({ ...organizationOption, ...outputOption }),
  async run(records, { organization, output }, io) {
    const keys = await listRecords(records, io, KEYS, organization);
    const columns = ["id", "name", "keySuffix", "state", "roles", "createdAt", "expireAt", "secretName"];
    printList(io, output, columns, keys.map(shownKey));
  },
});

export const showKey = recordsCommand({
  name: "show",
  summary: "show an API key, and when it was last used",
  details:
    "It has two secrets while it is rotated. The time of the last use is precise to a minute, and comes a\n" +
    "little later.",
  examples: ["admin key show <uuid>", "admin key show <uuid> --output yaml"],
  arguments: z.object(keyArgument),
  options: z.object({ ...ofOrganization, ...outputOption }),
  async run(records, { key: id, organization, output }, io) {
    const { record } = await requireRecord(records, KEYS, id, organization);
    const usage = await records.get<ConfigMap>(CONFIG_MAPS, keyUsageConfigMapName(record.organizationId));
    const used = parseKeyUsage(usage?.data).get(id);
    printOne(io, output, { ...shownKey(record), usedAt: used?.ok ? used.value : undefined });
  },
});

export const disableKey = stateCommand("disable", "disabled", {
  summary: "disable an API key until it is enabled again",
  details: "Every replica of the API rejects it within a second.",
});

export const enableKey = stateCommand("enable", "enabled", { summary: "enable an API key again" });

function stateCommand(
  name: string,
  state: ApiKey["state"],
  texts: { readonly summary: string; readonly details?: string },
) {
  return recordsCommand({
    name,
    ...texts,
    examples: [`admin key ${name} <uuid>`],
    arguments: z.object(keyArgument),
    options: z.object(ofOrganization),
    async run(records, { key: id, organization }, io) {
      let already = "";
      const { record } = await changeRecord(records, KEYS, { id, organization }, (before) => {
        already = before.state === state ? " already" : "";
        return { state: base64(state) };
      });
      io.err(`API key ${record.name} (${id}) is ${state}${already}.\n`);
    },
  });
}

export const deleteKey = recordsCommand({
  name: "delete",
  summary: "delete an API key for good",
  details: "Every replica of the API rejects it within a second.",
  examples: ["admin key delete <uuid>", "admin key delete <uuid> --yes"],
  arguments: z.object(keyArgument),
  options: z.object({ ...ofOrganization, ...yesOption }),
  async run(records, { key: id, organization, yes }, io) {
    const secret = await requireObject(records, KEYS, id, organization);
    const key = KEYS.parse(secret);
    // A malformed record can be deleted, too.
    const what = key.ok
      ? `${key.value.name} (${id}) of organization ${key.value.organizationId}`
      : `${id}, whose record is malformed`;
    await confirm(io, yes, `Delete API key ${what}?`);
    await deleteUnlessChanged(`API key ${id}`, () => records.delete(SECRETS, secret));
    io.err(`API key ${id} is deleted.\n`);
  },
});
