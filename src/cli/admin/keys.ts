import * as z from "zod";
import type { ConfigMap, Secret } from "../../kube/objects.ts";
import { CONFIG_MAPS, SECRETS } from "../../kube/paths.ts";
import { type ApiKey, parseApiKey } from "../../records/api-key.ts";
import { keyUsageConfigMapName, parseKeyUsage } from "../../records/key-usage.ts";
import { clusterSettings } from "../../settings/cluster.ts";
import { option } from "../../settings/option.ts";
import { argument } from "../argument.ts";
import { defineCommand } from "../command.ts";
import { outputOption, yesOption } from "../common-options.ts";
import { confirm } from "../confirm.ts";
import { CliError } from "../failure.ts";
import { printList, printOne } from "../output.ts";
import { uuid } from "../values.ts";
import { withRecords } from "./connection.ts";
import { organizationOption, wellFormed } from "./options.ts";
import type { Records } from "./records.ts";
import { unlessChanged, untilUndisturbed } from "./retry.ts";

export const keyArgument = {
  key: argument(uuid, { description: "id of the API key, as admin key list shows it" }),
};

/** A cluster may have very many keys, and the id is in none of their names. */
export const ofOrganization = {
  organization: option(uuid.optional(), {
    placeholder: "uuid",
    description: "look only among the keys of this organization, which is faster",
  }),
};

/** @throws CliError when there is none of that id */
export async function findKeySecret(
  records: Records,
  id: string,
  organizationId: string | undefined,
): Promise<Secret> {
  const secrets = await records.list<Secret>(SECRETS, "api-key", organizationId);
  const [found, another] = secrets.filter(({ data }) => decoded(data?.["id"]) === id);
  if (!found) {
    const where = organizationId === undefined ? "" : ` in organization ${organizationId}`;
    throw new CliError(
      `There is no API key with the id ${id}${where}: see admin key list --organization <uuid>.`,
    );
  }
  if (another) {
    throw new CliError(
      `Several Secrets are the API key ${id}, among them ${found.metadata.name} and ${another.metadata.name}: delete with kubectl those that should not be.`,
    );
  }
  return found;
}

/** @throws CliError when the record is malformed */
export function readKey(secret: Secret, records: Records): ApiKey {
  const parsed = parseApiKey(secret.metadata.labels, secret.data);
  if (parsed.ok) return parsed.value;
  throw new CliError(
    `The record of the API key is malformed, correct it first (kubectl edit secret ${secret.metadata.name} --namespace ${records.namespace}): ${parsed.problem}.`,
  );
}

function decoded(text: string | undefined): string | undefined {
  return text === undefined ? undefined : Buffer.from(text, "base64").toString("utf8");
}

/** As a Secret's data has it. */
export function encoded(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

/** The properties of a key that are shown. The key id and the secrets are not stored. */
export function shownKey(key: ApiKey, secretName: string) {
  const { id, organizationId, name, keySuffix, state, roles, createdAt, expireAt, ipAccessList } = key;
  const allowFrom = ipAccessList.map(({ source }) => source);
  const secrets = key.secretHashes.length;
  return {
    ...{ id, organizationId, name, keySuffix, state, roles, createdAt, expireAt },
    ...{ allowFrom, secrets, secretName },
  };
}

export const listKeys = defineCommand({
  name: "list",
  summary: "list the API keys of an organization",
  details: "Key ids and secrets are not stored, so they are not shown.",
  examples: ["admin key list --organization <uuid>"],
  options: z.object({ ...organizationOption, ...outputOption, ...clusterSettings }),
  async run({ organization, output, ...cluster }, io) {
    const objects = await withRecords(cluster, io, (records) =>
      records.list<Secret>(SECRETS, "api-key", organization),
    );
    const keys = wellFormed(io, objects, ({ metadata, data }) => {
      const parsed = parseApiKey(metadata.labels, data);
      return parsed.ok ? { ok: true, value: shownKey(parsed.value, metadata.name) } : parsed;
    });
    printList(
      io,
      output,
      ["id", "name", "keySuffix", "state", "roles", "createdAt", "expireAt", "secretName"],
      keys,
    );
  },
});

export const showKey = defineCommand({
  name: "show",
  summary: "show an API key, and when it was last used",
  details:
    "It has two secrets while it is rotated. The time of the last use is precise to a minute, and comes a\n" +
    "little later.",
  examples: ["admin key show <uuid>", "admin key show <uuid> --output yaml"],
  arguments: z.object(keyArgument),
  options: z.object({ ...ofOrganization, ...outputOption, ...clusterSettings }),
  async run({ key: id, organization, output, ...cluster }, io) {
    const shown = await withRecords(cluster, io, async (records) => {
      const secret = await findKeySecret(records, id, organization);
      const key = readKey(secret, records);
      const usage = await records.get<ConfigMap>(CONFIG_MAPS, keyUsageConfigMapName(key.organizationId));
      const used = parseKeyUsage(usage?.data).get(id);
      return { ...shownKey(key, secret.metadata.name), usedAt: used?.ok ? used.value : undefined };
    });
    printOne(io, output, shown);
  },
});

export const disableKey = stateCommand({
  name: "disable",
  state: "disabled",
  summary: "disable an API key until it is enabled again",
  details: "Every replica of the API rejects it within a second.",
});

export const enableKey = stateCommand({
  name: "enable",
  state: "enabled",
  summary: "enable an API key again",
});

function stateCommand({
  name,
  state,
  ...texts
}: {
  readonly name: string;
  readonly state: ApiKey["state"];
  readonly summary: string;
  readonly details?: string;
}) {
  return defineCommand({
    name,
    ...texts,
    examples: [`admin key ${name} <uuid>`],
    arguments: z.object(keyArgument),
    options: z.object({ ...ofOrganization, ...clusterSettings }),
    async run({ key: id, organization, ...cluster }, io) {
      const before = await withRecords(cluster, io, (records) =>
        untilUndisturbed(`API key ${id}`, async () => {
          const secret = await findKeySecret(records, id, organization);
          const key = readKey(secret, records);
          await records.change(SECRETS, secret, { state: encoded(state) });
          return key;
        }),
      );
      const already = before.state === state ? " already" : "";
      io.err(`API key ${before.name} (${id}) is ${state}${already}.\n`);
    },
  });
}

export const deleteKey = defineCommand({
  name: "delete",
  summary: "delete an API key for good",
  details: "Every replica of the API rejects it within a second.",
  examples: ["admin key delete <uuid>", "admin key delete <uuid> --yes"],
  arguments: z.object(keyArgument),
  options: z.object({ ...ofOrganization, ...yesOption, ...clusterSettings }),
  async run({ key: id, organization, yes, ...cluster }, io) {
    await withRecords(cluster, io, async (records) => {
      const secret = await findKeySecret(records, id, organization);
      const { metadata, data } = secret;
      const key = parseApiKey(metadata.labels, data);
      // One that cannot be read can still be deleted.
      const what = key.ok
        ? `${key.value.name} (${id}) of organization ${key.value.organizationId}`
        : `${id}, whose record is malformed`;
      await confirm(io, yes, `Delete API key ${what}?`);
      await unlessChanged(`API key ${id}`, () => records.delete(SECRETS, secret));
    });
    io.err(`API key ${id} is deleted.\n`);
  },
});
